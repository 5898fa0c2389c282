"""The fuse box: settings in, adapters out. The only place where adapters are built."""

from pandora_dagster.wiring.house import House, open_house

__all__ = ["House", "open_house"]
