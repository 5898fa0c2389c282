"""Environment and files -> one frozen `Settings`. The only package that reads the environment, and only on request."""

from pandora_dagster.settings.environment import load_settings, process_environment, set_process_variables
from pandora_dagster.settings.settings_model import SettingRow, Settings, settings_table

__all__ = ["SettingRow", "Settings", "load_settings", "process_environment", "set_process_variables", "settings_table"]
