"""Dagster definitions: assets, checks, jobs, schedules, sensors and resources. What they run is in `app` and `phases`."""
