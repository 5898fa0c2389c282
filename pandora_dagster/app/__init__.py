"""The application: the container of one open store, its services, and the composition root that builds both from settings."""

from pandora_dagster.app.application import App
from pandora_dagster.app.composition import open_app

__all__ = ["App", "open_app"]
