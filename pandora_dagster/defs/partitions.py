"""Partitions. Knows how a turn is named in Dagster; knows nothing of what a turn is."""

import dagster as dg

TURNS = dg.DynamicPartitionsDefinition(name="turns")
"""One key per live turn, `<user>:turn_000811` (DECISIONS 15). Imported turns have keys too, but no materialisations."""
