"""After an import, turns of the command line, of the API and of Dagster, and an archival, a credential is in the user's documents alone."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import zstandard

from tests.api.server_process import started
from tests.faults.processes import asked, pandora

PASSWORD, KEY, CODE = "hunter2-Zebra", "sk-proj-ab12cd34ef56gh78ij90kl", "Tr0ub4dor&3xyz"
NEW_TURN = f"""
from pandora_dagster.definitions import defs
from pandora_dagster.defs.instance import open_instance
from pandora_dagster.settings import load_settings, process_environment
config = {{"query": "Is this right?\\\\npassword: {CODE}", "user": "anna", "mode": "chat", "session": "s1"}}
with open_instance(load_settings(process_environment())) as instance:
    job = defs.resolve_job_def("new_turn")
    assert job.execute_in_process(run_config={{"ops": {{"ask": {{"config": config}}}}}}, instance=instance).success
"""


def test_a_credential_stands_in_the_documents_of_its_user_alone(tmp_path: Path) -> None:
    """Not in indexes, call records, prompt packs, metrics, or Dagster's runs, events and metadata."""
    root, file = tmp_path / "store", tmp_path / "talks.jsonl"
    messages = [
        {"role": "user", "content": f"My password: {PASSWORD} is for the router. Which desk did we order?"},
        {"role": "assistant", "content": "Noted. The oak desk costs 248 euros. " * 20},
        {"role": "user", "content": f"The API key is {KEY} and the desk arrives on 5 May."},
        {"role": "assistant", "content": f"The key {KEY} is noted. The desk arrives on 5 May. " * 10},
    ]
    file.write_text(json.dumps({"id": "c1", "user_id": "anna", "created_at": "2026-01-04T10:00:00Z", "messages": messages}) + "\n")
    assert pandora(root, "import", str(file))[0] == 0
    asked(root, f"What is this for?\npassword: {PASSWORD}")
    with started(root) as api, api.http() as client:
        body = {"model": "pandora", "user": "anna", "messages": [{"role": "user", "content": f"Whose API key is {KEY}?"}]}
        assert client.post("/v1/chat/completions", json=body).status_code == 200
    code, _, err = pandora(root, code=NEW_TURN)
    assert code == 0, err
    assert pandora(root, "archive")[0] == 0
    found = {(place.split("/")[0], secret) for place, text in _stored_texts(root) for secret in (PASSWORD, KEY, CODE) if secret in text}
    assert found == {("turns", PASSWORD), ("turns", KEY), ("turns", CODE), ("cold", PASSWORD), ("cold", KEY)}, sorted(found)


def _stored_texts(root: Path) -> Iterator[tuple[str, str]]:
    """Where a text of the store is, and the text: files, packed files, and cells of tables."""
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        place, data = path.relative_to(root).as_posix().removeprefix("users/anna/"), path.read_bytes()
        yield place, data.decode(errors="replace")
        if path.suffix == ".zst":
            yield place, zstandard.ZstdDecompressor().stream_reader(data).read().decode(errors="replace")
        elif path.suffix == ".duckdb":
            with duckdb.connect(str(path), read_only=True) as index:
                for (table,) in index.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                    yield f"{place}:{table}", "\n".join(map(str, index.table(table).fetchall()))
        elif data.startswith(b"SQLite format 3"):
            with closing(sqlite3.connect(path)) as records:
                for (table,) in records.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                    yield f"{place}:{table}", "\n".join(map(str, records.execute(f'SELECT * FROM "{table}"')))
