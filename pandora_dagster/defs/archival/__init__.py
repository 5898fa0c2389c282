"""Dagster definitions of the archive: assets, checks, jobs, schedules and a sensor."""
