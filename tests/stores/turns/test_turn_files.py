"""The turn store's promises: numbers, documents compared with their manifest, revisions, names."""

import json
import shutil
from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.documents.sections import ContextDocument, new_context
from pandora_dagster.errors import BadIdError, DocumentError, InputError, StoreError, UnknownTurnError
from pandora_dagster.stores.turns.manifests import parse_manifest
from tests.stores.turns.turn_rig import NOW, ORDER, QUERY, begun, record, tree, with_phase


def test_a_started_turn_holds_the_words_of_the_user_and_reads_back(turns):
    """Section 0 is the query, byte for byte, CR and heading look-alikes included; the turn is open."""
    turn = begun(turns)
    assert turns.load(turn.key) == turn
    assert ContextDocument.parse(turn.context).query() == QUERY
    assert (turn.manifest.state, turn.manifest.created_at, turn.manifest.tokens > 0) == (TurnState.OPEN, "2026-01-04T14:30:00Z", True)


def test_a_query_that_is_no_text_is_refused(turns):
    """A lone surrogate (undecodable bytes of a command line) and 50 MB are refused in one sentence; nothing is stored."""
    for query in ("caf\udce9", "x" * 50_000_000):
        with pytest.raises(InputError, match=r"query: .*expected"):
            begun(turns, query)
    assert list(turns.keys()) == []


BAD_STARTS = [{"user": "../x"}, {"user": "a" * 300}, {"user": "a\0"}, {"session": "../s"}, {"session": ""}, {"mode": "voice"}]


@pytest.mark.parametrize("bad", BAD_STARTS)
def test_ids_that_must_not_become_paths_are_refused(turns, tmp_path, bad):
    """InputError before a number is given or anything is written."""
    wanted = {"user": "anna", "session": "s", "mode": "chat", **bad}
    with pytest.raises(InputError, match="expected"):
        turns.start(wanted["user"], "q", session=wanted["session"], mode=wanted["mode"], now=NOW)
    assert list(tmp_path.iterdir()) == []


def test_numbers_are_never_given_again(turns, tmp_path):
    """Not after the newest folder is erased, not after a bulk allocation, not where folders run ahead of the counter."""
    first = begun(turns).key
    shutil.rmtree(turns.path(first))
    assert begun(turns).key.number == 2
    assert turns.allocate("anna", 3) == range(3, 6)
    assert begun(turns).key.number == 6
    for number in (7, 9):
        (tmp_path / "users/anna/turns" / f"turn_{number:06d}").mkdir()
    assert begun(turns).key.number == 10
    (tmp_path / "users/anna/turns/.last_number").write_text("damaged")
    assert begun(turns).key.number == 11


def test_a_commit_reads_back_as_it_was_returned(turns):
    """Documents, hashes, tokens, time and fields; values of reports as JSON gives them back."""
    turn = with_phase(turns, begun(turns), "reflection", section=1, files={"reflection.json": "{}"}, runtime="extractive")
    assert turns.load(turn.key) == turn and turns.manifest(turn.key) == turn.manifest
    assert turn.manifest.last_activity > turn.manifest.created_at
    assert turn.manifest.runtime == "extractive" and set(turn.manifest.sections) == {"0", "1"}
    assert turn.manifest.phases[0].files.keys() == {"reflection.json"}


def test_section_0_is_never_altered(turns):
    """A commit whose context.md says something else in section 0 is refused and changes nothing."""
    turn = begun(turns)
    with pytest.raises(DocumentError, match="section 0 was changed"):
        turns.commit(turn, phase=None, context=new_context("other words").render())
    assert turns.load(turn.key) == turn


BAD_NAMES = [
    "../x.md",
    "/etc/x.md",
    "turn.json",
    "context.md",
    "calls.jsonl",
    "a/b.md",
    "x",
    "X.md",
    "x.md\n",
    "revisions/1/x.md",
    ".kept/x.md",
]


@pytest.mark.parametrize("name", [*BAD_NAMES, "x\0.md", "a" * 300 + ".md", "webpage_cache/../x.md"])
def test_a_document_name_is_one_of_the_whitelist(turns, name):
    """No name leads out of the turn's folder or over its own files."""
    turn = begun(turns)
    before = tree(turns.path(turn.key))
    with pytest.raises(DocumentError, match="document name"):
        turns.commit(turn, phase=record("reflection"), files={name: "x"})
    assert tree(turns.path(turn.key)) == before


def test_a_commit_on_a_stale_turn_is_refused(turns):
    """Two processes that loaded the same turn: the second to commit is reported, the first one's work stays."""
    stale = begun(turns)
    newer = with_phase(turns, stale, "reflection", section=1)
    with pytest.raises(StoreError, match="another process committed"):
        with_phase(turns, stale, "reflection", section=1, text="other")
    assert turns.load(stale.key) == newer


@pytest.mark.parametrize(("path", "possible"), [(["saved", "open"], False), (["halted", "saved"], False), (["clarify", "archived"], False)])
def test_states_follow_their_order(turns, path, possible):
    """Only `reopen` makes a finished turn open; a halted one is saved after it was reopened."""
    turn = turns.commit(begun(turns), phase=None, state=TurnState(path[0]))
    if possible:
        assert turns.commit(turn, phase=None, state=TurnState(path[1])).manifest.state == path[1]
    else:
        with pytest.raises(StoreError, match="cannot become"):
            turns.commit(turn, phase=None, state=TurnState(path[1]))


def replaced(name, old, new):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes().replace(old, new))


def changed(**fields):
    def damage(folder):
        raw = json.loads((folder / "turn.json").read_text())
        (folder / "turn.json").write_text(json.dumps({**raw, **fields}))

    return damage


DAMAGE = {
    "section changed": (replaced("context.md", b"response", b"rESPONSE"), "context.md: section 5: changed since"),
    "section 0 gone": (replaced("context.md", b"## 0. User Query", b"## User Query"), "context.md: section 0 .* is missing"),
    "section twice": (replaced("context.md", b"## 5. Synthesis", b"## 1. x\n\n## 5. Synthesis"), "context.md: section 1 occurs 2 times"),
    "section gone": (replaced("context.md", b"## 5. Synthesis", b"Synthesis"), "context.md: section 5 is missing"),
    "CRLF": (replaced("context.md", b"\n", b"\r\n"), "context.md: section 0: its line ends were changed to CRLF"),
    "preamble": (replaced("context.md", b"## 0. User", b"hello\n## 0. User"), "context.md: text outside its sections"),
    "not UTF-8": (replaced("context.md", b"what", b"wh\xff"), "context.md: byte .*: not UTF-8"),
    "empty": (lambda f: (f / "context.md").write_bytes(b""), "context.md: empty"),
    "50 MB": (lambda f: (f / "context.md").write_bytes(b"x" * 50_000_000), "context.md: 50,000,000 bytes: expected at most"),
    "context gone": (lambda f: (f / "context.md").unlink(), "context.md: missing"),
    "file gone": (lambda f: (f / "response.md").unlink(), "response.md: missing"),
    "file changed": (lambda f: (f / "response.md").write_text("x"), "response.md: changed since"),
    "file is a folder": (lambda f: ((f / "response.md").unlink(), (f / "response.md").mkdir()), "response.md: cannot be read"),
    "file emptied": (lambda f: (f / "response.md").write_text(""), "response.md: empty"),
    "manifest gone": (lambda f: (f / "turn.json").unlink(), "turn.json: missing"),
    "manifest cut": (lambda f: (f / "turn.json").write_text('{"format'), "turn.json: not JSON"),
    "manifest a list": (lambda f: (f / "turn.json").write_text("[]"), "turn.json: a list instead of an object: expected a turn's manifest"),
    "format of tomorrow": (changed(format_version=4), "turn.json: format_version 4: expected at most 3"),
    "format no number": (changed(format_version="1"), "turn.json: format_version '1': expected a number"),
    "unknown field": (changed(extra=1), "turn.json: extra: "),
    "another turn's": (changed(turn_id="turn_000009"), "turn.json: it describes anna:turn_000009"),
    "a name that leads out": (
        changed(phases=[{"phase": "x", "finished_at": "", "files": {"../../x.md": "0" * 64}}]),
        "document name '../../x.md'",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_named(turns, case):
    """Every damage is a DocumentError that says the file, what it is and what was expected."""
    damage, says = DAMAGE[case]
    key = with_phase(turns, with_phase(turns, begun(turns), "reflection", section=1), "response", section=5, files={"response.md": "r"}).key
    damage(Path(turns.path(key)))
    with pytest.raises(DocumentError, match=says) as caught:
        turns.load(key)
    assert "expected" in str(caught.value) or says.endswith(": ")


def test_left_overs_of_a_killed_phase_are_no_damage(turns):
    """Sections and files that the manifest does not name have not happened."""
    turn = with_phase(turns, begun(turns), "reflection", section=1)
    folder = Path(turns.path(turn.key))
    (folder / "context.md").write_text(ContextDocument.parse(turn.context).with_section(5, "half").render(), newline="")
    (folder / "response.md").write_text("half")
    assert turns.load(turn.key) == turn


def test_a_link_out_of_the_store_is_refused(turns, tmp_path_factory):
    """A turn folder or a document that is a link to elsewhere is never followed, for reading or writing."""
    outside = tmp_path_factory.mktemp("outside")
    turn = with_phase(turns, begun(turns), "response", section=5, files={"response.md": "r"})
    folder = Path(turns.path(turn.key))
    shutil.copytree(folder, outside / "turn")
    (folder / "response.md").unlink()
    (folder / "response.md").symlink_to(outside / "turn" / "response.md")
    with pytest.raises(DocumentError, match="a link leads to"):
        turns.load(turn.key)
    shutil.rmtree(folder)
    folder.symlink_to(outside / "turn")
    with pytest.raises(DocumentError, match="a link leads to"):
        turns.commit(turn, phase=None, state=TurnState.HALTED)


def recorded_turn(key):
    context = new_context("hello").with_section(5, "hi").render()
    manifest = Manifest(
        user_id=key.user, turn_id=key.turn_id, session_id="s", state=TurnState.SAVED, created_at="", last_activity="", recorded=True
    )
    return key, {"context.md": context, "messages.jsonl": '{"role": "user"}\n'}, manifest


def test_recorded_turns_are_placed_whole(turns):
    """Hashes and tokens are filled in; a number that is taken is refused and the turn there stays."""
    items = [recorded_turn(TurnKey("anna", n)) for n in turns.allocate("anna", 3)]
    placed = turns.place_many(items)
    assert [turns.load(turn.key) for turn in placed] == list(placed)
    assert placed[0].manifest.recorded and placed[0].files.keys() == {"messages.jsonl"} and placed[0].manifest.tokens
    with pytest.raises(StoreError, match="already exists"):
        turns.place_many([recorded_turn(TurnKey("anna", 2))])
    assert turns.load(TurnKey("anna", 2)) == placed[1]


def test_a_recorded_turn_is_re_run_as_a_revision(turns):
    """Its recorded answer is dropped from the revision, its messages stay, and it counts as live from then on."""
    turn = turns.place_many([recorded_turn(TurnKey("anna", turns.allocate("anna", 1)[0]))])[0]
    again = turns.reopen(turn, phase="reflection", order=ORDER)
    assert (again.manifest.revision, again.manifest.recorded, again.manifest.state) == (1, False, TurnState.OPEN)
    assert set(again.manifest.sections) == {"0"} and again.files == turn.files


def test_turns_are_listed_from_names_alone(turns, tmp_path):
    """By user and number; what is no turn folder is passed over, and damage in one turn hides no other."""
    for number in (10, 2, 1_000_000):
        (tmp_path / "users/bob/turns" / f"turn_{number:06d}").mkdir(parents=True)
    for name in ("turn_1", "turn_0000012", "turn_000000", "notes", ".last_number"):
        (tmp_path / "users/bob/turns" / name).mkdir()
    (tmp_path / "users" / ".hidden").mkdir()
    begun(turns)
    assert turns.users() == ("anna", "bob")
    assert [str(k) for k in turns.keys(None)] == ["anna:turn_000001", "bob:turn_000002", "bob:turn_000010", "bob:turn_1000000"]
    assert list(turns.keys("nobody")) == []


def test_short_forms_are_resolved_where_they_are_unique(turns):
    """The full key always; the short one where one user has that turn."""
    key = begun(turns).key
    turns.start("bob", "q", session="s", mode="chat", now=NOW)
    second = begun(turns).key
    assert turns.resolve("anna:turn_000001") == turns.resolve("anna:1") == key
    assert turns.resolve("turn_000002") == turns.resolve("2") == second
    for text, error in (("1", "2 users have it"), ("7", "no such turn"), ("carl:turn_000001", "no such turn")):
        with pytest.raises(UnknownTurnError, match=error):
            turns.resolve(text)
    for text in ("../x:turn_000001", "turn_1", "", "anna:turn_0001/..", "a\0b:1", "x" * 300 + ":1"):
        with pytest.raises(BadIdError):
            turns.resolve(text)


def test_unknown_turns_and_revisions_are_reported_so(turns):
    """UnknownTurnError, also for the lock."""
    key = begun(turns).key
    for ask in (lambda k: turns.load(k), lambda k: turns.lock(k), lambda k: turns.path(k), lambda k: turns.manifest(k)):
        with pytest.raises(UnknownTurnError, match="expected a turn that exists"):
            ask(TurnKey("anna", 99))
    with pytest.raises(UnknownTurnError, match="no revision 3"):
        turns.load(key, revision=3)


def test_a_manifest_of_format_0_is_brought_up_to_date():
    """No version and no last activity: the creation stands for it."""
    raw = {"user_id": "anna", "turn_id": "turn_000001", "session_id": "s", "created_at": "2026-01-04T14:30:00Z"}
    manifest = parse_manifest(json.dumps(raw), where="turn.json")
    assert (manifest.format_version, manifest.last_activity, manifest.revision, manifest.recorded) == (3, raw["created_at"], 0, False)


def test_a_manifest_of_format_1_is_brought_up_to_date():
    """It could not be archived; nothing else of it changes."""
    raw = {"format_version": 1, "user_id": "anna", "turn_id": "turn_000001", "session_id": "s", "created_at": "2026-01-04T14:30:00Z"}
    manifest = parse_manifest(json.dumps({**raw, "last_activity": "2026-01-05T14:30:00Z", "state": "saved"}), where="turn.json")
    assert (manifest.format_version, manifest.archive, manifest.state, manifest.last_activity) == (3, None, "saved", "2026-01-05T14:30:00Z")


def test_many_folders_are_placed_with_few_open_files(turns):
    """More recorded turns than a process may hold files open, documents in folders among them."""
    keys = [TurnKey("anna", n) for n in turns.allocate("anna", 400)]
    items = [(key, {**files, "webpage_cache/shop-1/page.md": "x"}, manifest) for key, files, manifest in map(recorded_turn, keys)]
    before = len(list(Path("/proc/self/fd").iterdir()))
    placed = turns.place_many(items)
    assert list(turns.keys("anna")) == keys and turns.load(keys[-1]) == placed[-1]
    assert len(list(Path("/proc/self/fd").iterdir())) == before
