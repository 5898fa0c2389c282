"""Environment and files -> one frozen `Settings`. The only room that reads the environment, and only when asked."""

from pandora_dagster.settings.load import load_settings
from pandora_dagster.settings.model import Settings
from pandora_dagster.settings.table import SettingRow, settings_table

__all__ = ["SettingRow", "Settings", "load_settings", "settings_table"]
