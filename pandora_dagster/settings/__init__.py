"""Environment and files -> one frozen `Settings`. The only room that reads the environment, and only when asked."""

from pandora_dagster.settings.environment import load_settings
from pandora_dagster.settings.settings_model import SettingRow, Settings, settings_table

__all__ = ["SettingRow", "Settings", "load_settings", "settings_table"]
