"""The Dagster graph of a turn: assets, checks, jobs and records. Knows Dagster and the flow; what a phase does is not here."""
