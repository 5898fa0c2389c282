"""Dagster definitions of one turn: assets, checks, jobs and metadata."""
