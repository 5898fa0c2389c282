"""Forever memory: Markdown notes as an editor keeps them, read and never written, each fault told and no more lost than it."""

import os

import pytest

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.ports.user_storage import NoteStore
from pandora_dagster.errors import DocumentError
from pandora_dagster.language.terms import TermReader
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema
from pandora_dagster.stores.user.note_files import MAX_NOTE_BYTES, NoteFiles, read_note
from pandora_dagster.stores.user.note_index import NOTE_SCHEMA, DuckNoteIndex

ANNA, BEN = user_id("anna"), user_id("ben")
NOTE = """---
title: Russian information warfare
tags: [history, "propaganda"]
aliases: [troll farms]
---
# Another heading

The Internet Research Agency worked from St. Petersburg. See [[Products/hamsters|pets]] and [[Budget#2026]]. #research/media

```
#not_a_tag [[not a link]]
```
"""


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "my notes"
    (made / "Knowledge").mkdir(parents=True)
    (made / "Knowledge" / "russian_history.md").write_text(NOTE)
    return made


@pytest.fixture
def notes(tmp_path, folder) -> NoteStore:
    return opened(tmp_path, folder)


def opened(tmp_path, folder):
    """The store as another process opens it."""
    index = DuckNoteIndex(DuckDBFile(tmp_path / "store/indexes/note_index.duckdb", NOTE_SCHEMA), TermReader())
    return NoteFiles(tmp_path / "store", {ANNA: folder}, index)


def test_a_note_has_its_title_tags_and_links(notes):
    """Front matter, tags of the text, wiki links; code says neither."""
    (header,) = notes.listing(ANNA).headers
    assert (header.name, header.title) == ("Knowledge/russian_history.md", "Russian information warfare")
    assert header.tags == ("history", "propaganda", "research/media") and header.links == ("Products/hamsters", "Budget")
    assert notes.load(ANNA, header.name).text.startswith("# Another heading") and "title:" not in notes.load(ANNA, header.name).text


@pytest.mark.parametrize(
    ("text", "title", "tags"),
    [
        ("plain words", "my note", ()),
        ("# Seen\ntext", "Seen", ()),
        ("---\ntags: '#a, b #c'\n---\n", "my note", ("a", "b", "c")),
        ("---\n---\ntext", "my note", ()),
        ("\ufeff---\r\ntitle: T\r\n---\r\ntext\r\n", "T", ()),
        ("---\ntags: [1, null, {a: b}]\ntitle: [x]\n---\n", "my note", ("1",)),
        ("", "my note", ()),
        ("a --- rule\n---\n", "my note", ()),
    ],
)
def test_notes_in_their_forms(text, title, tags):
    """What is not given is taken from the heading, then from the name."""
    header = read_note(text, name="x/my_note.md", where="n").header
    assert (header.title, header.tags) == (title, tags)


@pytest.mark.parametrize(
    ("front", "says"),
    [
        ("---\ntags: [a\n---\n", r"n:3: not YAML: .*expected YAML"),
        ("---\ntitle: x\n", r"n:1: front matter without its end"),
        ("---\n- a\n---\n", r"n:2: front matter: list: expected a mapping"),
        (f"---\na: {'x' * 70_000}\n---\n", r"n:1: front matter of 70,\d+ characters"),
        ("---\n!!python/object/apply:os.system [ls]\n---\n", r"n:2: a value with the tag os\.system: expected a plain value"),
    ],
)
def test_broken_front_matter_is_named_with_its_line(front, says):
    """DocumentError; nothing of it is run or guessed."""
    with pytest.raises(DocumentError, match=says):
        read_note(front, name="n.md", where="n")


@pytest.mark.parametrize(
    ("front", "day"),
    [
        ("updated: 2026-03-01\ncreated: 2020-01-01", "2026-03-01"),
        ("created: 2026-03-01T10:00:00", "2026-03-01"),
        ("date: 2026-03-01 some day", "2026-03-01"),
        ("modified: yesterday\ndate: '2026-02-28'", "2026-02-28"),
        ("date: '2026-13-01'", ""),
        ("title: x", ""),
    ],
)
def test_front_matter_dates_a_note(front, day):
    """The day of its last change, else of its making; what is no date is none."""
    assert read_note(f"---\n{front}\n---\ntext\n", name="n.md", where="n").dated == day


def test_a_note_that_cannot_be_read_costs_no_other(notes, folder, tmp_path):
    """Broken, 20 MB large, not UTF-8, linked out of the folder: each is reported by name, and each halts only who names it."""
    (folder / "broken.md").write_text("---\n[\n---\n")
    (folder / "large.md").write_bytes(b"x" * (20 * 1024 * 1024))
    (folder / "latin.md").write_bytes(b"\xff")
    (tmp_path / "secret.md").write_text("the key is 42")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "linked").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.md")
    listing = notes.listing(ANNA)
    assert [h.name for h in listing.headers] == ["Knowledge/russian_history.md"]
    for name in ("broken.md", "large.md", "latin.md", "link.md", "linked/", "pipe.md"):
        assert sum(name in notice for notice in listing.notices) == 1, (name, listing.notices)
    assert f"expected at most {MAX_NOTE_BYTES:,}" in " ".join(listing.notices) and "42" not in " ".join(listing.notices)
    for name in ("broken.md", "large.md", "latin.md", "link.md", "pipe.md"):
        with pytest.raises(DocumentError):
            notes.load(ANNA, name)


@pytest.mark.parametrize("name", ["../secret.md", "/etc/passwd", "Knowledge/../../secret.md", "linked/secret.md", "", "x\0y", "nowhere.md"])
def test_a_name_that_was_not_listed_is_missing(notes, tmp_path, folder, name):
    """A name is looked up, it never becomes a path."""
    (tmp_path / "secret.md").write_text("the key is 42")
    (folder / "linked").symlink_to(tmp_path)
    with pytest.raises(DocumentError) as error:
        notes.load(ANNA, name)
    assert error.value.missing and notes.path(ANNA, f"notes/{name}") is None


def test_links_within_the_folder_and_hidden_folders(notes, folder):
    """A link to another note is that note, listed once and by its own name; the editor's own folders are none of the user's."""
    (folder / "again.md").symlink_to(folder / "Knowledge" / "russian_history.md")
    (folder / ".obsidian").mkdir()
    (folder / ".obsidian" / "plugin.md").write_text("x")
    (folder / "shown.md").symlink_to(folder / ".obsidian" / "plugin.md")
    listing = notes.listing(ANNA, "Russian troll farms")
    assert [h.name for h in listing.headers] == ["shown.md", "Knowledge/russian_history.md"] and listing.notices == ()
    assert [m.name for m in listing.matches] == ["Knowledge/russian_history.md"]


def test_a_changed_note_is_read_again(notes, folder):
    """What is remembered of a note is only as old as its file."""
    assert notes.listing(ANNA).headers[0].title == "Russian information warfare"
    (folder / "Knowledge" / "russian_history.md").write_text("# New\n")
    assert notes.listing(ANNA).headers[0].title == "New"


def test_a_folder_belongs_to_one_user(notes, tmp_path):
    """Others keep theirs under the store, and see nothing of it."""
    assert notes.listing(BEN).headers == ()
    own = tmp_path / "store/users/ben/notes"
    own.mkdir(parents=True)
    (own / "mine.md").write_text("ben's")
    assert [h.name for h in notes.listing(BEN).headers] == ["mine.md"] and "mine.md" not in {h.name for h in notes.listing(ANNA).headers}


def test_notes_are_never_written(notes, folder):
    """Listing and loading leave every byte and every time as they were."""
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in folder.rglob("*")}
    notes.listing(ANNA)
    notes.load(ANNA, "Knowledge/russian_history.md")
    assert {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in folder.rglob("*")} == before


def test_a_note_is_found_by_what_stands_in_it(notes, folder):
    """Neither its name nor its title says the words: the passage that does comes with it, and one word of several leads nowhere."""
    for n in range(30):
        (folder / f"day {n}.md").write_text(f"# Day {n}\n\nA quiet day, some work in the garden.\n\nRead a book.")
    (folder / "House.md").write_text(
        "# House\n\nThe roof was mended.\n\n## Heating\n\nThe boiler is a Viessmann; its service is due in May.\n"
    )
    found = notes.listing(ANNA, "When is the service of the boiler due?").matches
    assert [m.name for m in found] == ["House.md"]
    assert found[0].passage == "## Heating\n\nThe boiler is a Viessmann; its service is due in May." and found[0].score == 1.0
    assert notes.listing(ANNA, "who was the locksmith in the garden?").matches == ()
    assert notes.listing(ANNA, "what do Viessmann hamsters eat?").matches == ()
    assert notes.listing(ANNA, "").matches == () == notes.listing(ANNA, "what was that?").matches
    assert notes.listing(BEN, "boiler service").matches == ()


def test_notes_are_read_again_only_where_they_changed(notes, folder, tmp_path, monkeypatch):
    """Another process finds what the first one indexed: it reads changed and new notes, and forgets those that are gone."""
    for n in range(5):
        (folder / f"n{n}.md").write_text(f"number {n} speaks of walnuts")
    notes.listing(ANNA)
    read = []
    monkeypatch.setattr(
        "pandora_dagster.stores.user.note_files.read_note", lambda text, **known: read.append(known["name"]) or read_note(text, **known)
    )
    other = opened(tmp_path, folder)
    other.listing(ANNA)
    assert read == []
    (folder / "n1.md").write_text("now of hazelnuts")
    (folder / "n2.md").unlink()
    (folder / "new.md").write_text("hazelnuts as well")
    assert {h.name for h in other.listing(ANNA).headers} == {"Knowledge/russian_history.md", "n0.md", "n1.md", "n3.md", "n4.md", "new.md"}
    assert read == ["n1.md", "new.md"]
    assert {m.name for m in other.listing(ANNA, "hazelnuts").matches} == {"n1.md", "new.md"}
    assert {m.name for m in other.listing(ANNA, "walnuts").matches} == {"n0.md", "n3.md", "n4.md"}


@pytest.mark.parametrize("harm", ["gone", "garbage", "old design"])
def test_an_index_of_notes_makes_itself_again(notes, folder, tmp_path, harm):
    """Nothing in it is the only copy: nobody is asked to rebuild it."""
    assert notes.listing(ANNA, "Petersburg agency").matches
    path = tmp_path / "store/indexes/note_index.duckdb"
    path.unlink()
    if harm == "garbage":
        path.write_bytes(b"no database" * 500)
    elif harm == "old design":
        DuckDBFile(path, Schema(0, ("CREATE TABLE notes (name VARCHAR)",))).create()
    assert [m.name for m in notes.listing(ANNA, "Petersburg agency").matches] == ["Knowledge/russian_history.md"]


def test_without_notes_no_index_is_made(tmp_path):
    """Looking writes nothing."""
    assert opened(tmp_path, tmp_path / "none").listing(ANNA, "anything").headers == () and not (tmp_path / "store").exists()
