"""All settings, each with its environment variable, bounds and meaning.

`Settings` validates texts of environment variables; `environment.py` reads them, resolves paths and reports faults.
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


@dataclass(frozen=True, slots=True)
class Variable:
    """The environment variable of a field: its name, the expected form, and its default in words."""

    name: str
    expected: str
    default: str = ""
    """Only where the default depends on another setting."""


def _parse_user(text: str) -> UserId:
    try:
        return user_id(text)
    except BadIdError as fault:
        raise ValueError(str(fault)) from None


def _check_zone(name: str) -> str:
    if name != "UTC" and name not in available_timezones():
        raise ValueError(f"{name} is not a known time zone")
    return name


def _parse_day(value: object) -> object:
    """Parse an ISO 8601 day: pydantic alone would read any number as a day."""
    return date.fromisoformat(value) if isinstance(value, str) else value


def _parse_time_of_day(value: object) -> object:
    """Parse hours and minutes, such as 02:00; seconds are refused."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(r"[0-9]{2}:[0-9]{2}", value):
        raise ValueError(f"{value!r} is not a time of day")
    return time.fromisoformat(value)


_EXPECTED_TOKENS = "a whole number of tokens from {} to 1000000"
_EXPECTED_FOLDER = "a folder that you may use, or a path where one can be made"
_EXPECTED_SWITCH = "true or false"
_TextLayer = Literal["NERVES", "REFLEX", "MIND", "VOICE"]


REMOVED_SETTINGS = frozenset({"PANDORA_POLICY", "PANDORA_STAGE"})
"""Variables of earlier versions, which no longer have an effect."""


class Settings(BaseModel):
    """Every setting, validated. Paths are absolute, tokens are cl100k tokens, durations are in the unit of their name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    root: Annotated[Path, Variable("PANDORA_ROOT", _EXPECTED_FOLDER, "data/panda-system-docs below the current folder")] = Field(
        description="The store root: the folder of all documents, indexes and interventions."
    )
    runtime: Annotated[
        Literal["extractive", "sglang", "sglang-offline", "openai"],
        Variable("PANDORA_RUNTIME", "extractive, sglang, sglang-offline or openai"),
    ] = Field(
        "extractive",
        description="The runtime of model calls: the embedded one, the SGLang servers of the runtime file, its models in processes that "
        "end with the command, or any server with OpenAI's HTTP API.",
    )
    openai_base_url: Annotated[str, Field(max_length=2_048), Variable("PANDORA_OPENAI_BASE_URL", "a URL that ends in /v1", "none")] = Field(
        "",
        description="With PANDORA_RUNTIME=openai: the server of all layers, e.g. http://127.0.0.1:11434/v1; without it the store's own "
        "runtime file names the servers.",
    )
    openai_model: Annotated[str, Field(max_length=300), Variable("PANDORA_OPENAI_MODEL", "a name of at most 300 characters", "none")] = (
        Field("", description="The name under which that server lists the model.")
    )
    openai_api_key_env: Annotated[
        str, Field(max_length=100), Variable("PANDORA_OPENAI_API_KEY_ENV", "the name of an environment variable", "none")
    ] = Field("", description="The name of the environment variable that holds the key of that server; never the key itself.")
    openai_context: Annotated[
        int, Field(ge=0, le=10_000_000), Variable("PANDORA_OPENAI_CONTEXT", "a whole number of tokens, 0 to 10000000")
    ] = Field(0, description="Tokens that the model takes in one request, prompt and answer together; 0: what the server says, else 4,096.")
    timeout_factor: Annotated[
        float, Field(ge=1, le=100, allow_inf_nan=False), Variable("PANDORA_TIMEOUT_FACTOR", "a number from 1 to 100")
    ] = Field(1.0, description="By how much longer than its recipe's timeout_ms a call may take, for a slow machine.")
    runtime_file: Annotated[
        Path, Variable("PANDORA_RUNTIME_FILE", "an existing file", "<root>/runtime.yaml where it exists, else the shipped one")
    ] = Field(description="The file that assigns a model server to each layer (used with every runtime but the embedded one).")
    sglang_python: Annotated[str, Field(min_length=1, max_length=4_096), Variable("PANDORA_SGLANG_PYTHON", "a Python interpreter")] = Field(
        "python3", description="The Python interpreter of the environment with SGLang, for servers that `pandora serve` starts."
    )
    recipes_root: Annotated[
        Path, Variable("PANDORA_RECIPES", "an existing folder that holds recipes/ and prompts/", "the shipped recipes and prompts")
    ] = Field(description="The folder that holds `recipes/` and `prompts/`.")
    dagster_home: Annotated[Path, Variable("DAGSTER_HOME", _EXPECTED_FOLDER, "<root>/dagster")] = Field(
        description="Dagster's own storage: runs, events, schedules."
    )
    notes: Annotated[Path | None, Variable("PANDORA_NOTES", "an existing folder of Markdown notes", "users/<user>/notes in the store")] = (
        Field(None, description="Notes of PANDORA_USER: a folder of Markdown notes, e.g. an Obsidian vault; only read.")
    )
    user: Annotated[UserId, AfterValidator(_parse_user), Variable("PANDORA_USER", "a user id: letters, digits, _ - @ + or single dots")] = (
        Field(UserId("me"), description="The user of commands without --user.")
    )
    timezone: Annotated[str, AfterValidator(_check_zone), Variable("PANDORA_TIMEZONE", "a time zone such as UTC or Europe/Berlin")] = Field(
        "UTC",
        description="The time zone of days: of unnamed sessions, of Dagster's day partitions, of archival.",
    )
    first_day: Annotated[date, BeforeValidator(_parse_day), Variable("PANDORA_FIRST_DAY", "a day such as 2026-01-04")] = Field(
        date(2026, 1, 1), description="The first day of the partitions of batches and prompt scores in Dagster."
    )
    keep_packs: Annotated[bool, Variable("PANDORA_KEEP_PACKS", _EXPECTED_SWITCH)] = Field(
        True, description="Whether prompt packs and raw answers are stored, credentials redacted."
    )
    keep_packs_days: Annotated[int, Field(ge=1, le=36_500), Variable("PANDORA_KEEP_PACKS_DAYS", "a whole number of days, 1 to 36500")] = (
        Field(
            90,
            description="Days after which prompt packs, raw answers, checkpoints of research and places where a chat could go on are "
            "deleted.",
        )
    )
    embeddings: Annotated[Literal["off", "local", "runtime"], Variable("PANDORA_EMBEDDINGS", "off, local or runtime")] = Field(
        "off",
        description="The embedding model that search uses in addition to words: none, a small local model (the extra `embeddings`), or "
        "the server that the runtime file names under `embeddings`.",
    )
    tools: Annotated[
        str,
        Field(max_length=1_000, pattern=r"^(?:[A-Za-z0-9_.-]+(?:,[A-Za-z0-9_.-]+)*)?$"),
        Variable("PANDORA_TOOLS", "names of entry points of pandora_dagster.tools, separated by commas", "none"),
    ] = Field("", description="Tools of other packages that turns may call; one that opens connections needs PANDORA_WEB=on too.")
    web: Annotated[Literal["off", "on"], Variable("PANDORA_WEB", "off or on")] = Field(
        "off", description="Whether pages of the web may be read; off, no request leaves this machine for the web."
    )
    search: Annotated[
        str,
        Field(max_length=4_096, pattern=r"^(?:[a-z][a-z0-9_-]*=[^\x00-\x1f,]+(?:,[a-z][a-z0-9_-]*=[^\x00-\x1f,]+)*)?$"),
        Variable("PANDORA_SEARCH", "search providers such as searxng=URL, folder=DIR or recorded=FILE, separated by commas", "none"),
    ] = Field("", description="The search providers of turns; with PANDORA_WEB=on, or a folder, a turn may find things out.")
    research_refresh: Annotated[
        str,
        Field(max_length=4_096, pattern=r"^(?:off|all|[a-z0-9_.-]+(?:,[a-z0-9_.-]+)*)$"),
        Variable("PANDORA_RESEARCH_REFRESH", "off, all, or topics of `pandora research topics`, separated by commas"),
    ] = Field(
        "off",
        description="Which topics of PANDORA_USER's cached research the nightly schedule researches again before they expire; off, none.",
    )
    research_refresh_pages: Annotated[
        int, Field(ge=8, le=10_000), Variable("PANDORA_RESEARCH_REFRESH_PAGES", "a whole number, 8 to 10000")
    ] = Field(24, description="Requests for pages that one refresh may send; a topic reads up to 8 pages.")
    web_hosts: Annotated[Path | None, Variable("PANDORA_WEB_HOSTS", "an existing file with resolver and dial", "none")] = Field(
        None, description="A hosts file that replaces the resolver: the addresses of names, and where they are dialled."
    )
    web_contact: Annotated[
        str,
        Field(max_length=200, pattern=r"^[\x21-\x27\x2a-\x7e]*$"),
        Variable("PANDORA_WEB_CONTACT", "a mail address or URL without blanks and brackets", "none"),
    ] = Field("", description="How an operator of a site reaches you; sent with the name of this program in each request.")
    web_max_pages: Annotated[int, Field(ge=1, le=100_000), Variable("PANDORA_WEB_MAX_PAGES", "a whole number, 1 to 100000")] = Field(
        200, description="Requests for pages that one command or turn may send, redirects and repetitions included."
    )
    web_max_hosts: Annotated[int, Field(ge=1, le=10_000), Variable("PANDORA_WEB_MAX_HOSTS", "a whole number, 1 to 10000")] = Field(
        50, description="Hosts that one command or turn may ask, for pages, robots.txt and files of rendered pages."
    )
    web_max_mb: Annotated[int, Field(ge=1, le=100_000), Variable("PANDORA_WEB_MAX_MB", "a whole number of megabytes, 1 to 100000")] = Field(
        200, description="Megabytes that one command or turn may receive."
    )
    web_max_s: Annotated[
        float, Field(gt=0, le=86_400, allow_inf_nan=False), Variable("PANDORA_WEB_MAX_SECONDS", "seconds, over 0 and up to 86400")
    ] = Field(900.0, description="Seconds that one command or turn may use for pages, waits for hosts included.")
    web_page_mb: Annotated[int, Field(ge=1, le=1_000), Variable("PANDORA_WEB_PAGE_MB", "a whole number of megabytes, 1 to 1000")] = Field(
        10, description="Megabytes of one page, unpacked."
    )
    web_page_s: Annotated[
        float, Field(gt=0, le=3_600, allow_inf_nan=False), Variable("PANDORA_WEB_PAGE_SECONDS", "seconds, over 0 and up to 3600")
    ] = Field(30.0, description="Seconds for one request, and the longest Retry-After that is waited for.")
    web_redirects: Annotated[int, Field(ge=0, le=20), Variable("PANDORA_WEB_REDIRECTS", "a whole number, 0 to 20")] = Field(
        5, description="Redirects of a page that are followed."
    )
    web_delay_s: Annotated[float, Field(ge=0, le=3_600, allow_inf_nan=False), Variable("PANDORA_WEB_DELAY", "seconds, 0 to 3600")] = Field(
        1.0, description="Least seconds between two requests to a host; a longer Crawl-delay of its robots.txt has precedence."
    )
    browser: Annotated[Literal["auto", "off", "always"], Variable("PANDORA_BROWSER", "auto, off or always")] = Field(
        "auto", description="Whether pages of the web are rendered in Chromium: those that need it, none, or all."
    )
    chromium: Annotated[str, Field(max_length=4_096), Variable("PANDORA_CHROMIUM", "a program", "chromium or google-chrome on PATH")] = (
        Field("", description="The Chromium that renders pages of the web.")
    )
    browser_consent: Annotated[Literal["ask", "accept"], Variable("PANDORA_BROWSER_CONSENT", "ask or accept")] = Field(
        "ask",
        description="Whether a dialogue about cookies is accepted where a page shows nothing without it and the dialogue has one button: "
        "ask leaves it unanswered, accept presses the button.",
    )
    index_lock_wait_s: Annotated[
        float,
        Field(gt=0, le=3_600, allow_inf_nan=False),
        Variable("PANDORA_INDEX_LOCK_WAIT", "seconds, over 0 and up to 3600"),
    ] = Field(30.0, description="Seconds to wait for an index that another process holds.")

    archive_after_days: Annotated[
        int, Field(ge=1, le=36_500), Variable("PANDORA_ARCHIVE_AFTER_DAYS", "a whole number of days, 1 to 36500")
    ] = Field(
        30,
        description="Days after its last activity, in PANDORA_TIMEZONE, after which a turn is archived; a restored turn is kept from "
        "archival for as many days again.",
    )
    archive_at: Annotated[time, BeforeValidator(_parse_time_of_day), Variable("PANDORA_ARCHIVE_AT", "a time of day such as 02:00")] = Field(
        time(2), description="When the nightly archival runs, in PANDORA_TIMEZONE."
    )
    pages_port: Annotated[int, Field(ge=0, le=65_535), Variable("PANDORA_PAGES_PORT", "a port, 0 to 65535")] = Field(
        8401, description="Port on which `pandora ui` and `pandora pages` show the archive and lineage on this machine; 0: pages off."
    )
    archive_ratio: Annotated[
        float, Field(gt=0, lt=1, allow_inf_nan=False), Variable("PANDORA_ARCHIVE_RATIO", "a share over 0 and under 1")
    ] = Field(0.4, description="Target size of an archived document, as a share of its tokens.")
    archive_document_tokens: Annotated[
        int, Field(ge=1, le=1_000_000), Variable("PANDORA_ARCHIVE_DOCUMENT_TOKENS", _EXPECTED_TOKENS.format(1))
    ] = Field(
        500,
        description="A document beside context.md over this many tokens stays readable in the archived turn, compressed; "
        "a shorter one is in cold storage only.",
    )
    archive_concurrency: Annotated[int, Field(ge=1, le=1_000), Variable("PANDORA_ARCHIVE_CONCURRENCY", "a whole number, 1 to 1000")] = (
        Field(8, description="Turns that archival compresses concurrently, by a model or in worker processes.")
    )

    cold_keep_days: Annotated[
        int, Field(ge=0, le=36_500), Variable("PANDORA_COLD_KEEP_DAYS", "a whole number of days, 0 to 36500; 0 for ever")
    ] = Field(
        0,
        description="Days after its archival after which `cold_retention` and `pandora cold prune` delete a turn's originals; "
        "neither starts by itself.",
    )
    runs_keep_days: Annotated[
        int, Field(ge=0, le=36_500), Variable("PANDORA_RUNS_KEEP_DAYS", "a whole number of days, 0 to 36500; 0 for ever")
    ] = Field(
        30, description="Days for which Dagster keeps the record of a finished run; the newest run of an asset and of a live turn stays."
    )

    default_context_budget: Annotated[
        int, Field(ge=100, le=1_000_000), Variable("DEFAULT_CONTEXT_BUDGET", _EXPECTED_TOKENS.format(100))
    ] = Field(12_000, description="Total tokens of a call that a larger layer takes because its documents exceed the recipe's budget.")
    response_token_reserve: Annotated[
        int, Field(ge=0, le=1_000_000), Variable("RESPONSE_TOKEN_RESERVE", _EXPECTED_TOKENS.format(0) + ", under DEFAULT_CONTEXT_BUDGET")
    ] = Field(2_000, validate_default=True, description="Tokens of such a call that are reserved for the answer.")
    compression_threshold: Annotated[
        float, Field(gt=0, le=1, allow_inf_nan=False), Variable("COMPRESSION_THRESHOLD", "a share over 0 and up to 1")
    ] = Field(
        0.9, description="Share of a section's budget above which the section is compressed, and to which; a call may use its whole budget."
    )
    compression_enabled: Annotated[bool, Variable("COMPRESSION_ENABLED", _EXPECTED_SWITCH)] = Field(
        True, description="Whether documents over their budget are compressed; off, such a call halts."
    )
    compression_cache_ttl_s: Annotated[
        int, Field(ge=0, le=31_536_000), Variable("COMPRESSION_CACHE_TTL", "a whole number of seconds, 0 to 31536000")
    ] = Field(300, description="Seconds for which a compressed document is reused.")
    min_compression_savings: Annotated[int, Field(ge=0, le=1_000_000), Variable("MIN_COMPRESSION_SAVINGS", _EXPECTED_TOKENS.format(0))] = (
        Field(500, description="Tokens that the compression of a section or document must save; otherwise it is not made.")
    )
    compression_model_layer: Annotated[_TextLayer, Variable("COMPRESSION_MODEL_LAYER", "NERVES, REFLEX, MIND or VOICE")] = Field(
        "NERVES", description="The model layer that compresses; use another than NERVES only where NERVES has no server."
    )

    @field_validator("response_token_reserve")
    @classmethod
    def _check_reserve(cls, reserve: int, info: ValidationInfo) -> int:
        budget = info.data.get("default_context_budget")
        if budget is not None and reserve >= budget:
            raise ValueError(f"{reserve} leaves no tokens of {budget}")
        return reserve

    @property
    def zone(self) -> ZoneInfo:
        """`timezone` as an object."""
        return ZoneInfo(self.timezone)


def variables() -> dict[str, Variable]:
    """Field name -> its environment variable, in the order of `Settings`."""
    annotations = ((field, annotation) for field, info in Settings.model_fields.items() for annotation in info.metadata)
    return {field: annotation for field, annotation in annotations if isinstance(annotation, Variable)}


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting as a row of the documentation."""

    name: str
    default: str
    meaning: str
    expected: str


def settings_table() -> tuple[SettingRow, ...]:
    """Every setting in order: environment variable, default in words, meaning, expected form."""
    fields = Settings.model_fields
    return tuple(
        SettingRow(
            variable.name, variable.default or _default_text(fields[field].default), fields[field].description or "", variable.expected
        )
        for field, variable in variables().items()
    )


def _default_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
