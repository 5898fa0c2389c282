"""The fuse box: settings in, adapters out. The only place where adapters are built."""

from pandora_dagster.wiring.archival import open_archive
from pandora_dagster.wiring.building import open_house
from pandora_dagster.wiring.house import House
from pandora_dagster.wiring.levels import open_levels

__all__ = ["House", "open_archive", "open_house", "open_levels"]
