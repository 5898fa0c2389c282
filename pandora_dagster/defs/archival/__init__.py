"""Dagster definitions of the archive: assets, schedule, sensor, resource."""
