"""The fuse box: settings in, adapters out. The only place where adapters are built."""

from pandora_dagster.wiring.archival import open_archive
from pandora_dagster.wiring.building import open_app
from pandora_dagster.wiring.app import App
from pandora_dagster.wiring.levels import open_levels

__all__ = ["App", "open_archive", "open_app", "open_levels"]
