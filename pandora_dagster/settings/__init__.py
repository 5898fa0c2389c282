"""Reads environment and files into one frozen `Settings`, on request. No other package reads the environment."""

from pandora_dagster.settings.environment import load_settings, process_environment, removed_settings, set_process_variables
from pandora_dagster.settings.settings_model import SettingRow, Settings, settings_table

__all__ = ["SettingRow", "Settings", "load_settings", "process_environment", "removed_settings", "set_process_variables", "settings_table"]
