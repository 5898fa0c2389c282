"""The environment of the process, and the `Settings` that it describes. The only module that reads or changes the environment."""

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from pandora_dagster.errors import ConfigurationError
from pandora_dagster.settings.settings_model import Settings, Variable, variables
from pandora_dagster.shipped import shipped_folder

_PREFIX = "PANDORA_"
_CREDENTIAL = "_KEY"
"""Names ending so are credentials that a runtime file refers to, not settings."""
_PATH_FIELDS = ("root", "runtime_file", "recipes_root", "dagster_home")


def process_environment(**changes: str) -> Mapping[str, str]:
    """The environment of this process, read-only; a non-empty value in `changes` takes the place of the variable that it names.

    Without changes it is a live view; with changes, a copy, which fits a child process.
    """
    given = {name: value for name, value in changes.items() if value}
    return MappingProxyType({**os.environ, **given} if given else os.environ)


def set_process_variables(**variables: str) -> None:
    """Set variables for libraries that take their options from the environment of this process."""
    os.environ.update(variables)


def load_settings(environ: Mapping[str, str], *, cwd: Path | None = None, shipped: Path | None = None) -> Settings:
    """The settings that `environ` describes; an empty value counts as not set.

    Relative paths start at `cwd` (default: the current folder). Raises ConfigurationError that lists every fault,
    one per line, as `PANDORA_RUNTIME: 'foo': expected extractive, sglang or sglang-offline`.
    """
    known = variables()
    given = {field: environ[v.name] for field, v in known.items() if environ.get(v.name)}
    faults = list(_unknown(environ, known.values()))
    values, misplaced = _with_paths(given, cwd or Path.cwd(), shipped or shipped_folder())
    faults += [_fault(known[field], given.get(field, str(values[field]))) for field in misplaced]
    try:
        settings = Settings.model_validate(values)
    except ValidationError as wrong:
        fields = dict.fromkeys(str(error["loc"][0]) for error in wrong.errors())
        faults += [_fault(known[f], str(given.get(f, Settings.model_fields[f].default))) for f in fields]
        raise ConfigurationError("\n".join(faults)) from None
    if faults:
        raise ConfigurationError("\n".join(faults))
    return settings


def _fault(variable: Variable, value: str) -> str:
    return f"{variable.name}: {value[:100]!r}: expected {variable.expected}"


def _unknown(environ: Mapping[str, str], known: Iterable[Variable]) -> Iterable[str]:
    """Faults of misspelt settings. Values stay out of the message: they may be credentials."""
    names = {v.name.removeprefix(_PREFIX): v.name for v in known}
    for name in sorted(environ):
        if name.startswith(_PREFIX) and not name.endswith(_CREDENTIAL) and name not in names.values():
            close = get_close_matches(name.removeprefix(_PREFIX), names, n=1)
            expected = "a name of docs/reference/settings.md, or a credential whose name ends in _KEY"
            yield f"{name}: unknown setting: " + (f"did you mean {names[close[0]]}?" if close else f"expected {expected}")


def _with_paths(given: Mapping[str, str], cwd: Path, shipped: Path) -> tuple[dict[str, object], list[str]]:
    """Values with every path absolute and defaulted, and the fields whose path is unusable."""
    root = _absolute(given.get("root", "data/panda-system-docs"), cwd)
    own = root / "runtime.yaml"
    defaults = {
        "root": root,
        "runtime_file": own if _is_file(own) else shipped / "data" / "runtime.yaml",
        "recipes_root": shipped,
        "dagster_home": root / "dagster",
    }
    places = {field: _absolute(given[field], cwd) if field in given else defaults[field] for field in _PATH_FIELDS}
    if "notes" in given:
        places["notes"] = _absolute(given["notes"], cwd)
    good_root = _may_be_folder(places["root"])
    usable = {
        "root": good_root,
        "dagster_home": _may_be_folder(places["dagster_home"]) or not (good_root or "dagster_home" in given),
        "runtime_file": "runtime_file" not in given or places["runtime_file"].is_file(),
        "recipes_root": "recipes_root" not in given or places["recipes_root"].is_dir(),
        "notes": "notes" not in given or _is_folder(places["notes"]),
    }
    return {**given, **places}, [field for field, good in usable.items() if not good]


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


def _absolute(text: str, cwd: Path) -> Path:
    """`text` below `cwd`, with `~` for the home folder; the `~name` of an unknown user stays unchanged."""
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        path = Path(text)
    return Path(cwd, path)


def _may_be_folder(path: Path) -> bool:
    """Whether `path` is a folder or can be created as one: no part of it is a file."""
    if "\0" in str(path):
        return False
    try:
        nearest = next(p for p in (path, *path.parents) if p.exists() or p == p.parent)
    except PermissionError:
        return False
    return nearest.is_dir()
