"""Settings from an environment: defaults, places, and every fault at once."""

import os
import subprocess
import sys
from datetime import date, time
from pathlib import Path

import pytest

from pandora_dagster.errors import ConfigurationError
from pandora_dagster.settings import Settings, load_settings, process_environment, removed_settings, set_process_variables, settings_table


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """A folder as a wheel ships it."""
    folder = tmp_path / "shipped"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "runtime.yaml").write_text("preset: p\n")
    return folder


def loaded(cwd: Path, **environ: str) -> Settings:
    return load_settings(environ, cwd=cwd, shipped=cwd / "shipped")


def faults(cwd: Path, **environ: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        loaded(cwd, **environ)
    return str(caught.value).splitlines()


def test_an_empty_environment_works(tmp_path: Path, shipped: Path) -> None:
    """Nothing needs to be set: the embedded runtime over a store below the current folder."""
    found = loaded(tmp_path)
    root = tmp_path / "data" / "panda-system-docs"
    assert (found.root, found.dagster_home, found.recipes_root) == (root, root / "dagster", shipped)
    assert (found.runtime, found.runtime_file, found.user) == ("extractive", shipped / "data" / "runtime.yaml", "me")
    assert (found.keep_packs, found.keep_packs_days, found.timezone, found.index_lock_wait_s) == (True, 90, "UTC", 30.0)


def test_the_documents_defaults(tmp_path: Path) -> None:
    """000's configuration keeps its values."""
    found = loaded(tmp_path)
    assert (found.default_context_budget, found.response_token_reserve, found.min_compression_savings) == (12_000, 2_000, 500)
    assert (found.compression_threshold, found.compression_enabled, found.compression_cache_ttl_s) == (0.9, True, 300)
    assert found.compression_model_layer == "NERVES"


def test_every_setting_can_be_set(tmp_path: Path, shipped: Path) -> None:
    """Each environment name reaches its field."""
    own = tmp_path / "own.yaml"
    own.write_text("")
    environ = {
        "PANDORA_ROOT": "store",
        "PANDORA_RUNTIME": "sglang",
        "PANDORA_RUNTIME_FILE": "own.yaml",
        "PANDORA_SGLANG_PYTHON": "/opt/sglang/bin/python",
        "PANDORA_RECIPES": str(shipped),
        "DAGSTER_HOME": "/tmp/dagster",
        "PANDORA_NOTES": str(shipped),
        "PANDORA_USER": "ann@example.org",
        "PANDORA_TIMEZONE": "Europe/Berlin",
        "PANDORA_FIRST_DAY": "2025-03-01",
        "PANDORA_KEEP_PACKS": "false",
        "PANDORA_KEEP_PACKS_DAYS": "7",
        "PANDORA_EMBEDDINGS": "runtime",
        "PANDORA_OPENAI_BASE_URL": "http://127.0.0.1:11434/v1",
        "PANDORA_OPENAI_MODEL": "qwen3:4b",
        "PANDORA_OPENAI_API_KEY_ENV": "OLLAMA_KEY",
        "PANDORA_OPENAI_CONTEXT": "8192",
        "PANDORA_TIMEOUT_FACTOR": "4",
        "PANDORA_TOOLS": "rooms,maps",
        "PANDORA_WEB": "on",
        "PANDORA_SEARCH": "searxng=http://127.0.0.1:8888,recorded=hits.jsonl",
        "PANDORA_RESEARCH_REFRESH": "web.vela_30",
        "PANDORA_RESEARCH_REFRESH_PAGES": "9",
        "PANDORA_WEB_HOSTS": "own.yaml",
        "PANDORA_WEB_CONTACT": "me@example.org",
        "PANDORA_WEB_MAX_PAGES": "7",
        "PANDORA_WEB_MAX_HOSTS": "3",
        "PANDORA_WEB_MAX_MB": "20",
        "PANDORA_WEB_MAX_SECONDS": "60",
        "PANDORA_WEB_PAGE_MB": "2",
        "PANDORA_WEB_PAGE_SECONDS": "5.5",
        "PANDORA_WEB_REDIRECTS": "0",
        "PANDORA_WEB_DELAY": "0",
        "PANDORA_BROWSER": "off",
        "PANDORA_CHROMIUM": "/opt/chromium/chrome",
        "PANDORA_BROWSER_CONSENT": "accept",
        "PANDORA_INDEX_LOCK_WAIT": "2.5",
        "PANDORA_ARCHIVE_AFTER_DAYS": "7",
        "PANDORA_ARCHIVE_AT": "03:30",
        "PANDORA_PAGES_PORT": "0",
        "PANDORA_COLD_KEEP_DAYS": "400",
        "PANDORA_RUNS_KEEP_DAYS": "90",
        "PANDORA_ARCHIVE_RATIO": "0.5",
        "PANDORA_ARCHIVE_DOCUMENT_TOKENS": "300",
        "PANDORA_ARCHIVE_CONCURRENCY": "2",
        "DEFAULT_CONTEXT_BUDGET": "8000",
        "RESPONSE_TOKEN_RESERVE": "0",
        "COMPRESSION_THRESHOLD": "1",
        "COMPRESSION_ENABLED": "off",
        "COMPRESSION_CACHE_TTL": "0",
        "MIN_COMPRESSION_SAVINGS": "10",
        "COMPRESSION_MODEL_LAYER": "NERVES",
    }
    assert environ.keys() == {row.name for row in settings_table()}
    assert loaded(tmp_path, **environ) == Settings(
        root=tmp_path / "store",
        runtime="sglang",
        runtime_file=own,
        sglang_python="/opt/sglang/bin/python",
        recipes_root=shipped,
        dagster_home=Path("/tmp/dagster"),
        notes=shipped,
        user="ann@example.org",
        timezone="Europe/Berlin",
        first_day=date(2025, 3, 1),
        keep_packs=False,
        keep_packs_days=7,
        embeddings="runtime",
        openai_base_url="http://127.0.0.1:11434/v1",
        openai_model="qwen3:4b",
        openai_api_key_env="OLLAMA_KEY",
        openai_context=8_192,
        timeout_factor=4.0,
        web="on",
        tools="rooms,maps",
        search="searxng=http://127.0.0.1:8888,recorded=hits.jsonl",
        research_refresh="web.vela_30",
        research_refresh_pages=9,
        web_hosts=own,
        web_contact="me@example.org",
        web_max_pages=7,
        web_max_hosts=3,
        web_max_mb=20,
        web_max_s=60.0,
        web_page_mb=2,
        web_page_s=5.5,
        web_redirects=0,
        web_delay_s=0.0,
        browser="off",
        chromium="/opt/chromium/chrome",
        browser_consent="accept",
        index_lock_wait_s=2.5,
        archive_after_days=7,
        archive_at=time(3, 30),
        pages_port=0,
        cold_keep_days=400,
        runs_keep_days=90,
        archive_ratio=0.5,
        archive_document_tokens=300,
        archive_concurrency=2,
        default_context_budget=8_000,
        response_token_reserve=0,
        compression_threshold=1.0,
        compression_enabled=False,
        compression_cache_ttl_s=0,
        min_compression_savings=10,
    )


def test_a_stores_own_runtime_file_comes_first(tmp_path: Path, shipped: Path) -> None:
    """`<root>/runtime.yaml` is used where it exists, the named file before it."""
    own, named = tmp_path / "store" / "runtime.yaml", tmp_path / "named.yaml"
    own.parent.mkdir()
    own.write_text("")
    named.write_text("")
    assert loaded(tmp_path, PANDORA_ROOT="store").runtime_file == own
    assert loaded(tmp_path, PANDORA_ROOT="store", PANDORA_RUNTIME_FILE="named.yaml").runtime_file == named


def test_a_removed_setting_is_named_and_changes_nothing(tmp_path: Path) -> None:
    """An environment of an earlier version works, and one line for each variable says that it has no effect."""
    environ = {"PANDORA_POLICY": "mediation", "PANDORA_STAGE": "repair"}
    assert loaded(tmp_path, **environ) == loaded(tmp_path)
    assert removed_settings(environ) == (
        "PANDORA_POLICY has no effect any more (CHANGELOG.md)",
        "PANDORA_STAGE has no effect any more (CHANGELOG.md)",
    )
    assert removed_settings({"PANDORA_POLICY": ""}) == ()


def test_empty_is_not_set(tmp_path: Path) -> None:
    """An empty value is as good as none."""
    assert loaded(tmp_path, PANDORA_ROOT="", PANDORA_RUNTIME="") == loaded(tmp_path)


def test_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~` is the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert loaded(tmp_path, PANDORA_ROOT="~/store").root == tmp_path / "store"


WRONG = {
    "PANDORA_RUNTIME": ("foo", "'foo': expected extractive, sglang, sglang-offline or openai"),
    "PANDORA_FIRST_DAY": ("20250301000000", "'20250301000000': expected a day such as 2026-01-04"),
    "PANDORA_ROOT": ("file", "file': expected a folder"),
    "DAGSTER_HOME": ("file/below", "file/below': expected a folder"),
    "PANDORA_RUNTIME_FILE": ("none.yaml", "'none.yaml': expected an existing file"),
    "PANDORA_RECIPES": ("none", "'none': expected an existing folder that holds recipes/ and prompts/"),
    "PANDORA_USER": ("../me", "'../me': expected a user id"),
    "PANDORA_TIMEZONE": ("Mars/Olympus", "'Mars/Olympus': expected a time zone such as UTC"),
    "PANDORA_KEEP_PACKS": ("maybe", "'maybe': expected true or false"),
    "PANDORA_KEEP_PACKS_DAYS": ("0", "'0': expected a whole number of days, 1 to 36500"),
    "PANDORA_TOOLS": ("rooms maps", "'rooms maps': expected names of entry points"),
    "PANDORA_WEB": ("yes", "'yes': expected off or on"),
    "PANDORA_SEARCH": ("searxng", "'searxng': expected search providers such as searxng=URL"),
    "PANDORA_WEB_HOSTS": ("none.json", "none.json': expected an existing file with resolver and dial"),
    "PANDORA_WEB_CONTACT": ("me (at) example", "'me (at) example': expected a mail address or URL without blanks and brackets"),
    "PANDORA_WEB_MAX_PAGES": ("0", "'0': expected a whole number, 1 to 100000"),
    "PANDORA_WEB_MAX_SECONDS": ("inf", "'inf': expected seconds, over 0 and up to 86400"),
    "PANDORA_WEB_DELAY": ("-1", "'-1': expected seconds, 0 to 3600"),
    "PANDORA_BROWSER": ("sometimes", "'sometimes': expected auto, off or always"),
    "PANDORA_INDEX_LOCK_WAIT": ("nan", "'nan': expected seconds, over 0 and up to 3600"),
    "PANDORA_ARCHIVE_AFTER_DAYS": ("0", "'0': expected a whole number of days, 1 to 36500"),
    "PANDORA_ARCHIVE_RATIO": ("1", "'1': expected a share over 0 and under 1"),
    "PANDORA_ARCHIVE_DOCUMENT_TOKENS": ("0", "'0': expected a whole number of tokens from 1 to 1000000"),
    "PANDORA_ARCHIVE_CONCURRENCY": ("many", "'many': expected a whole number, 1 to 1000"),
    "DEFAULT_CONTEXT_BUDGET": ("12k", "'12k': expected a whole number of tokens from 100 to 1000000"),
    "RESPONSE_TOKEN_RESERVE": ("-5", "'-5': expected a whole number of tokens from 0 to 1000000, under DEFAULT_CONTEXT_BUDGET"),
    "COMPRESSION_THRESHOLD": ("1.1", "'1.1': expected a share over 0 and up to 1"),
    "COMPRESSION_ENABLED": ("2", "'2': expected true or false"),
    "COMPRESSION_CACHE_TTL": ("-1", "'-1': expected a whole number of seconds"),
    "MIN_COMPRESSION_SAVINGS": ("1e9", "'1e9': expected a whole number of tokens from 0 to 1000000"),
    "COMPRESSION_MODEL_LAYER": ("EYES", "'EYES': expected NERVES"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_reported(name: str, tmp_path: Path) -> None:
    """A wrong value is one line: its name, the value, what was expected."""
    value, message = WRONG[name]
    (tmp_path / "file").write_text("")
    (fault,) = faults(tmp_path, **{name: value})
    assert fault.startswith(f"{name}: ") and message in fault


def test_all_faults_at_once(tmp_path: Path) -> None:
    """Every wrong value is reported in one error."""
    (tmp_path / "file").write_text("")
    found = faults(tmp_path, **{name: value for name, (value, _) in WRONG.items()})
    assert sorted(fault.partition(":")[0] for fault in found) == sorted(WRONG)


def test_the_reserve_leaves_room(tmp_path: Path) -> None:
    """What is kept for the answer must leave something of the budget."""
    (fault,) = faults(tmp_path, DEFAULT_CONTEXT_BUDGET="1000")
    assert fault.startswith("RESPONSE_TOKEN_RESERVE: '2000': expected") and fault.endswith("under DEFAULT_CONTEXT_BUDGET")


def test_a_misspelt_name_is_reported(tmp_path: Path) -> None:
    """An unknown PANDORA_ name is a fault, with the one that was meant, and without its value."""
    assert faults(tmp_path, PANDORA_RUNTIM="s3cret") == ["PANDORA_RUNTIM: unknown setting: did you mean PANDORA_RUNTIME?"]
    (fault,) = faults(tmp_path, PANDORA_COLOUR="s3cret")
    assert fault.startswith("PANDORA_COLOUR: unknown setting: expected") and "s3cret" not in fault


def test_credentials_and_foreign_names_are_left_alone(tmp_path: Path) -> None:
    """A name ending in _KEY is a credential for the runtime file; names without the prefix are somebody else's."""
    assert loaded(tmp_path, PANDORA_MIND_KEY="k", PATH="/bin", DAGSTER_GRPC_MAX_RX_BYTES="1") == loaded(tmp_path)


def test_strange_paths_are_faults(tmp_path: Path) -> None:
    """A path that no disk takes is reported; a home that nobody has is taken as written."""
    assert faults(tmp_path, PANDORA_ROOT="a\0b")[0].startswith("PANDORA_ROOT: 'a\\x00b': expected a folder")
    assert loaded(tmp_path, PANDORA_ROOT="~nobody-has-this-name").root == tmp_path / "~nobody-has-this-name"


def test_settings_do_not_change(tmp_path: Path) -> None:
    """Settings are frozen and know only their own fields."""
    with pytest.raises(ValueError, match="frozen"):
        loaded(tmp_path).root = tmp_path  # type: ignore[misc]
    with pytest.raises(ValueError, match="colour"):
        Settings.model_validate({**loaded(tmp_path).model_dump(), "colour": "red"})


def test_the_environment_is_read_only_when_asked() -> None:
    """Importing the room reads no environment and loads nothing heavy."""
    code = (
        "import sys, pandora_dagster.settings; "
        "sys.exit(bool({'openai', 'dagster', 'duckdb', 'pydantic_settings', 'yaml', 'tiktoken'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], env={**os.environ, "PANDORA_RUNTIME": "foo"}, check=False).returncode == 0


def test_the_process_environment_is_a_read_only_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later changes of the process show; nobody changes the process through the view."""
    found = process_environment()
    monkeypatch.setenv("PANDORA_X_KEY", "later")
    assert found["PANDORA_X_KEY"] == "later"
    with pytest.raises(TypeError):
        found["PANDORA_X_KEY"] = "other"  # pyright: ignore


def test_changes_take_the_place_of_variables_in_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty change leaves the variable of the process; the process itself stays as it was."""
    monkeypatch.setenv("PANDORA_ROOT", "here")
    changed = process_environment(PANDORA_ROOT="there", PANDORA_RUNTIME="")
    assert (changed["PANDORA_ROOT"], os.environ["PANDORA_ROOT"]) == ("there", "here")
    assert "PANDORA_RUNTIME" not in changed
    assert process_environment(PANDORA_ROOT="")["PANDORA_ROOT"] == "here"


def test_variables_for_libraries_are_set_in_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The local sentence model reads its options there."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    set_process_variables(HF_HUB_OFFLINE="1")
    assert os.environ["HF_HUB_OFFLINE"] == "1"
