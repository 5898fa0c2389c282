"""All settings, each with its environment name, bounds and meaning. Knows shapes and limits; reads nothing.

A value is what its environment variable says, as text; `load.py` gives paths their place and words the faults.
"""

import re
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from pandora_dagster.contracts.ids import UserId, user_id
from pandora_dagster.errors import BadIdError
from pandora_dagster.retrieval.context_window import WINDOW_POLICIES


@dataclass(frozen=True, slots=True)
class Variable:
    """The environment variable behind a field: its name, what it must look like, and its default in words."""

    name: str
    expected: str
    default: str = ""
    """For defaults that depend on another setting; plain defaults speak for themselves."""


def _user(text: str) -> UserId:
    try:
        return user_id(text)
    except BadIdError as fault:
        raise ValueError(str(fault)) from None


def _zone(name: str) -> str:
    if name != "UTC" and name not in available_timezones():
        raise ValueError(f"{name} is not a known time zone")
    return name


def _day(told: object) -> object:
    """ISO 8601 alone: as pydantic reads it, any number is a day too."""
    return date.fromisoformat(told) if isinstance(told, str) else told


def _hour(told: object) -> object:
    """Hours and minutes alone."""
    if not isinstance(told, str):
        return told
    if not re.fullmatch(r"[0-9]{2}:[0-9]{2}", told):
        raise ValueError(f"{told!r} is no time of day")
    return time.fromisoformat(told)


_TOKENS = "a whole number of tokens from {} to 1000000"
_FOLDER = "a folder that you may use, or a path where one can be made"
_SWITCH = "true or false"
_TextLayer = Literal["NERVES", "REFLEX", "MIND", "VOICE"]


class Settings(BaseModel):
    """Everything a person can set, checked. Paths are absolute; tokens in cl100k; times in the unit the name says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    root: Annotated[Path, Variable("PANDORA_ROOT", _FOLDER, "data/panda-system-docs below the current folder")] = Field(
        description="The store: every document, index and intervention lies below it."
    )
    runtime: Annotated[
        Literal["extractive", "sglang", "sglang-offline"], Variable("PANDORA_RUNTIME", "extractive, sglang or sglang-offline")
    ] = Field(
        "extractive",
        description="Who answers model calls: the embedded runtime, the servers of the runtime file, or its models in processes that last "
        "as long as the command.",
    )
    runtime_file: Annotated[
        Path, Variable("PANDORA_RUNTIME_FILE", "an existing file", "<root>/runtime.yaml where it exists, else the shipped one")
    ] = Field(description="Which model server answers for which layer (used with PANDORA_RUNTIME=sglang).")
    sglang_python: Annotated[str, Field(min_length=1, max_length=4_096), Variable("PANDORA_SGLANG_PYTHON", "a Python interpreter")] = Field(
        "python3", description="The interpreter of the environment that has SGLang, for the servers that `pandora serve` starts."
    )
    cookbook_root: Annotated[
        Path, Variable("PANDORA_RECIPES", "an existing folder that holds recipes/ and prompts/", "the shipped recipes and prompts")
    ] = Field(description="The folder that holds `recipes/` and `prompts/`.")
    dagster_home: Annotated[Path, Variable("DAGSTER_HOME", _FOLDER, "<root>/dagster")] = Field(
        description="Dagster's own storage: runs, events, schedules."
    )
    notes: Annotated[Path | None, Variable("PANDORA_NOTES", "an existing folder of Markdown notes", "users/<user>/notes in the store")] = (
        Field(None, description="Forever memory of PANDORA_USER: a folder of Markdown notes, e.g. an Obsidian vault; only read.")
    )
    user: Annotated[UserId, AfterValidator(_user), Variable("PANDORA_USER", "a user id: letters, digits, _ - @ + or single dots")] = Field(
        UserId("me"), description="The user of commands that are given none."
    )
    timezone: Annotated[str, AfterValidator(_zone), Variable("PANDORA_TIMEZONE", "a time zone such as UTC or Europe/Berlin")] = Field(
        "UTC",
        description="Whose midnight ends a day: of sessions that nobody named, of Dagster's day partitions, of archival.",
    )
    first_day: Annotated[date, BeforeValidator(_day), Variable("PANDORA_FIRST_DAY", "a day such as 2026-01-04")] = Field(
        date(2026, 1, 1), description="The first day partition in Dagster."
    )
    keep_packs: Annotated[bool, Variable("PANDORA_KEEP_PACKS", _SWITCH)] = Field(
        True, description="Whether prompt packs and raw answers are kept, credentials redacted."
    )
    keep_packs_days: Annotated[int, Field(ge=1, le=36_500), Variable("PANDORA_KEEP_PACKS_DAYS", "a whole number of days, 1 to 36500")] = (
        Field(90, description="Days after which kept packs and raw answers are deleted, after an `ask`.")
    )
    policy: Annotated[Literal["assistant", "mediation"], Variable("PANDORA_POLICY", "assistant or mediation")] = Field(
        "assistant", description="Which turns of a session a call sees: by the intent of the query, or by the stages of a mediation."
    )
    stage: Annotated[
        str, Variable("PANDORA_STAGE", "a stage of PANDORA_POLICY=mediation: " + ", ".join(WINDOW_POLICIES["mediation"].buffers), "none")
    ] = Field("", description="The stage that a mediation is in: it decides how many of its turns go whole.")
    embeddings: Annotated[Literal["off", "local", "runtime"], Variable("PANDORA_EMBEDDINGS", "off, local or runtime")] = Field(
        "off",
        description="Whose vectors the search uses besides the words: nobody's, a small local model's (the extra `embeddings`), or those "
        "of the server that the runtime file names under `embeddings`.",
    )
    index_lock_wait_s: Annotated[
        float,
        Field(gt=0, le=3_600, allow_inf_nan=False),
        Variable("PANDORA_INDEX_LOCK_WAIT", "seconds, over 0 and up to 3600"),
    ] = Field(30.0, description="Seconds to wait for another process that holds the index.")

    archive_after_days: Annotated[
        int, Field(ge=1, le=36_500), Variable("PANDORA_ARCHIVE_AFTER_DAYS", "a whole number of days, 1 to 36500")
    ] = Field(
        30, description="Days after its last activity, in PANDORA_TIMEZONE, after which a turn is archived; a restored one stays as long."
    )
    archive_at: Annotated[time, BeforeValidator(_hour), Variable("PANDORA_ARCHIVE_AT", "a time of day such as 02:00")] = Field(
        time(2), description="When the nightly archival runs, in PANDORA_TIMEZONE."
    )
    pages_port: Annotated[int, Field(ge=0, le=65_535), Variable("PANDORA_PAGES_PORT", "a port, 0 to 65535")] = Field(
        8401, description="Where `pandora ui` and `pandora pages` show the archive and lineage on this machine; 0: nowhere."
    )
    archive_ratio: Annotated[
        float, Field(gt=0, lt=1, allow_inf_nan=False), Variable("PANDORA_ARCHIVE_RATIO", "a share over 0 and under 1")
    ] = Field(0.42, description="Tokens that an archived document is to keep, as a share of its own.")
    archive_document_tokens: Annotated[int, Field(ge=1, le=1_000_000), Variable("PANDORA_ARCHIVE_DOCUMENT_TOKENS", _TOKENS.format(1))] = (
        Field(500, description="A document beside context.md over this many tokens stays with the archived turn, compressed.")
    )
    archive_concurrency: Annotated[int, Field(ge=1, le=1_000), Variable("PANDORA_ARCHIVE_CONCURRENCY", "a whole number, 1 to 1000")] = (
        Field(8, description="Turns that an archival compresses at a time, by a model or in processes of their own.")
    )

    cold_keep_days: Annotated[
        int, Field(ge=0, le=36_500), Variable("PANDORA_COLD_KEEP_DAYS", "a whole number of days, 0 to 36500; 0 for ever")
    ] = Field(
        0,
        description="Days after its archival after which `cold_retention` and `pandora cold prune` delete a turn's originals; "
        "neither runs of itself.",
    )
    runs_keep_days: Annotated[
        int, Field(ge=0, le=36_500), Variable("PANDORA_RUNS_KEEP_DAYS", "a whole number of days, 0 to 36500; 0 for ever")
    ] = Field(0, description="Days for which Dagster keeps a finished run; what shows a partition as materialised stays.")

    default_context_budget: Annotated[int, Field(ge=100, le=1_000_000), Variable("DEFAULT_CONTEXT_BUDGET", _TOKENS.format(100))] = Field(
        12_000, description="Tokens of a call that has no recipe budget."
    )
    response_token_reserve: Annotated[
        int, Field(ge=0, le=1_000_000), Variable("RESPONSE_TOKEN_RESERVE", _TOKENS.format(0) + ", under DEFAULT_CONTEXT_BUDGET")
    ] = Field(2_000, validate_default=True, description="Tokens kept free for the answer of a call that has no recipe budget.")
    compression_threshold: Annotated[
        float, Field(gt=0, le=1, allow_inf_nan=False), Variable("COMPRESSION_THRESHOLD", "a share over 0 and up to 1")
    ] = Field(0.9, description="Share of a budget above which compression starts.")
    compression_enabled: Annotated[bool, Variable("COMPRESSION_ENABLED", _SWITCH)] = Field(
        True, description="Whether documents over their budget are compressed; off, such a call halts."
    )
    compression_cache_ttl_s: Annotated[
        int, Field(ge=0, le=31_536_000), Variable("COMPRESSION_CACHE_TTL", "a whole number of seconds, 0 to 31536000")
    ] = Field(300, description="Seconds for which a compressed document is reused.")
    min_compression_savings: Annotated[int, Field(ge=0, le=1_000_000), Variable("MIN_COMPRESSION_SAVINGS", _TOKENS.format(0))] = Field(
        500, description="Tokens that compression must save at the soft levels to be worth it."
    )
    compression_model_layer: Annotated[_TextLayer, Variable("COMPRESSION_MODEL_LAYER", "NERVES, REFLEX, MIND or VOICE")] = Field(
        "NERVES", description="The model layer that compresses; another than NERVES only where none is served."
    )

    @field_validator("response_token_reserve")
    @classmethod
    def _leaves_room(cls, reserve: int, info: ValidationInfo) -> int:
        budget = info.data.get("default_context_budget")
        if budget is not None and reserve >= budget:
            raise ValueError(f"{reserve} leaves nothing of {budget}")
        return reserve

    @field_validator("stage")
    @classmethod
    def _of_its_policy(cls, stage: str, info: ValidationInfo) -> str:
        if stage and (info.data.get("policy") != "mediation" or stage not in WINDOW_POLICIES["mediation"].buffers):
            raise ValueError(f"{stage} is no stage of {info.data.get('policy')}")
        return stage

    @property
    def zone(self) -> ZoneInfo:
        """`timezone` as an object."""
        return ZoneInfo(self.timezone)


def variables() -> dict[str, Variable]:
    """Field name -> its environment variable, in the order of `Settings`."""
    marked = ((field, mark) for field, about in Settings.model_fields.items() for mark in about.metadata)
    return {field: mark for field, mark in marked if isinstance(mark, Variable)}


# The settings as rows, for the documentation and for `pandora doctor`. Knows nothing of the environment.


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
