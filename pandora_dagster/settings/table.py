"""The settings as rows, for the documentation and for `pandora doctor`. Knows nothing of the environment."""

from dataclasses import dataclass

from pandora_dagster.settings.model import Settings, variables


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting as people read it."""

    name: str
    default: str
    meaning: str
    expected: str


def settings_table() -> tuple[SettingRow, ...]:
    """Every setting in order: environment name, default in words, meaning, what a value must look like."""
    return tuple(_row(field) for field in variables())


def _row(field: str) -> SettingRow:
    about, variable = Settings.model_fields[field], variables()[field]
    return SettingRow(variable.name, variable.default or _shown(about.default), about.description or "", variable.expected)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
