"""The environment of the process, and the `Settings` that it describes. No other module reads or changes the environment."""

import os
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from pandora_dagster.errors import ConfigurationError
from pandora_dagster.settings.settings_model import REMOVED_SETTINGS, Settings, Variable, variables
from pandora_dagster.shipped import shipped_folder

_PREFIX = "PANDORA_"
_CREDENTIAL_SUFFIX = "_KEY"
"""A variable whose name ends in it is a credential that a runtime file refers to, not a setting."""
_UNDECODED = re.compile("[\ud800-\udfff]")
"""What a byte that is not UTF-8 becomes in the environment."""
_MAX_SHOWN_CHARACTERS = 100
"""Characters of a value that a message shows."""
_PATH_FIELDS = ("root", "runtime_file", "recipes_root", "dagster_home")


def process_environment(**changes: str) -> Mapping[str, str]:
    """The environment of this process, read-only; each non-empty value of `changes` replaces the variable of its name.

    Without changes it is a live view; with changes, a copy, which fits a child process.
    """
    overrides = {name: value for name, value in changes.items() if value}
    return MappingProxyType({**os.environ, **overrides} if overrides else os.environ)


def set_process_variables(**variables: str) -> None:
    """Set variables for libraries that take their options from the environment of this process."""
    os.environ.update(variables)


def load_settings(environ: Mapping[str, str], *, cwd: Path | None = None, shipped: Path | None = None) -> Settings:
    """The settings that `environ` describes; an empty value counts as not set.

    Relative paths start at `cwd` (default: the current folder). Raises ConfigurationError that lists every fault,
    one per line, as `PANDORA_RUNTIME: 'foo': expected extractive, sglang, sglang-offline or openai`.
    """
    variables_by_field = variables()
    texts = {field: environ[v.name] for field, v in variables_by_field.items() if environ.get(v.name)}
    if undecoded := [field for field, text in texts.items() if _UNDECODED.search(text)]:
        raise ConfigurationError("\n".join(_describe_fault(variables_by_field[field], texts[field]) for field in undecoded))
    faults = list(_unknown_setting_faults(environ, variables_by_field.values()))
    values, unusable_fields = _resolve_paths(texts, cwd or Path.cwd(), shipped or shipped_folder())
    faults += [_describe_fault(variables_by_field[field], texts.get(field, str(values[field]))) for field in unusable_fields]
    try:
        settings = Settings.model_validate(values)
    except ValidationError as invalid:
        fields = dict.fromkeys(str(error["loc"][0]) for error in invalid.errors())
        faults += [_describe_fault(variables_by_field[f], str(texts.get(f, Settings.model_fields[f].default))) for f in fields]
        raise ConfigurationError("\n".join(faults)) from None
    if faults:
        raise ConfigurationError("\n".join(faults))
    return settings


def removed_settings(environ: Mapping[str, str]) -> tuple[str, ...]:
    """A line for each variable that is set and that no longer has an effect."""
    return tuple(f"{name} has no effect any more (CHANGELOG.md)" for name in sorted(REMOVED_SETTINGS & environ.keys()) if environ[name])


def _describe_fault(variable: Variable, value: str) -> str:
    return f"{variable.name}: {value[:_MAX_SHOWN_CHARACTERS]!r}: expected {variable.expected}"


def _unknown_setting_faults(environ: Mapping[str, str], settings: Iterable[Variable]) -> Iterable[str]:
    """Variables with the prefix that are no setting. Messages leave their values out: they may be credentials."""
    names = {v.name.removeprefix(_PREFIX): v.name for v in settings}
    for name in sorted(environ.keys() - REMOVED_SETTINGS):
        if name.startswith(_PREFIX) and not name.endswith(_CREDENTIAL_SUFFIX) and name not in names.values():
            close = get_close_matches(name.removeprefix(_PREFIX), names, n=1)
            expected = "a name of docs/reference/settings.md, or a credential whose name ends in _KEY"
            yield f"{name}: unknown setting: " + (f"did you mean {names[close[0]]}?" if close else f"expected {expected}")


def _resolve_paths(texts: Mapping[str, str], cwd: Path, shipped: Path) -> tuple[dict[str, object], list[str]]:
    """Return the values of all set fields and of all paths, made absolute or by default, and the fields whose path cannot be used."""
    root = _absolute_path(texts.get("root", "data/panda-system-docs"), cwd)
    store_runtime_file = root / "runtime.yaml"
    defaults = {
        "root": root,
        "runtime_file": store_runtime_file if _is_file(store_runtime_file) else shipped / "data" / "runtime.yaml",
        "recipes_root": shipped,
        "dagster_home": root / "dagster",
    }
    paths = {field: _absolute_path(texts[field], cwd) if field in texts else defaults[field] for field in _PATH_FIELDS}
    paths |= {field: _absolute_path(texts[field], cwd) for field in ("notes", "web_hosts") if field in texts}
    is_root_usable = _can_be_folder(paths["root"])
    is_usable = {  # the default dagster_home below an unusable root is not a second fault
        "root": is_root_usable,
        "dagster_home": _can_be_folder(paths["dagster_home"]) or not (is_root_usable or "dagster_home" in texts),
        "runtime_file": "runtime_file" not in texts or paths["runtime_file"].is_file(),
        "recipes_root": "recipes_root" not in texts or paths["recipes_root"].is_dir(),
        "notes": "notes" not in texts or _is_folder(paths["notes"]),
        "web_hosts": "web_hosts" not in texts or paths["web_hosts"].is_file(),
    }
    return {**texts, **paths}, [field for field, usable in is_usable.items() if not usable]


def _is_file(path: Path) -> bool:
    """Whether `path` is a visible file; a folder without permission is reported by the code that opens the file."""
    try:
        return path.is_file()
    except PermissionError:
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _absolute_path(text: str, cwd: Path) -> Path:
    """`text` below `cwd`, with `~` for the home folder; the `~name` of an unknown user stays unchanged."""
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        path = Path(text)
    return Path(cwd, path)


def _can_be_folder(path: Path) -> bool:
    """Whether `path` is a folder or can be created as one: no part of it is a file."""
    if "\0" in str(path):
        return False
    try:
        nearest = next(p for p in (path, *path.parents) if p.exists() or p == p.parent)
    except PermissionError:
        return False
    return nearest.is_dir()
