"""A new source is one class and one registration: the gatherer offers, loads, renders and cites it like the shipped ones."""

import json
import shutil
from dataclasses import replace

import pytest

from pandora_dagster.documents.citations import source_references
from pandora_dagster.shipped import shipped_folder
from tests.fakes.context_sources import BOOKS, BookSource
from tests.phases.rig import Rig, open_rig, plain


def _extended(root, recipe, document, field):
    """The recipe reads one more document and answers one more field: formats of a source are the recipe's."""
    file = root / "recipes/pipeline" / f"{recipe}.yaml"
    text = file.read_text().replace("input_docs:\n", f"input_docs:\n  - {document}\n", 1)
    text = text.replace("total: 6500", "total: 6600").replace("prompt: 700", "prompt: 800")
    file.write_text(text.replace("  properties:\n", f"  properties:\n    {field}: {{type: array}}\n", 1))


@pytest.fixture
def library(tmp_path):
    """A rig with the shipped sources and books, registered last."""
    for name in ("recipes", "prompts"):
        shutil.copytree(shipped_folder() / name, tmp_path / name)
    _extended(tmp_path, "phase2_retrieval", "book_headers", "relevant_books")
    _extended(tmp_path, "phase2_synthesis", "book_texts", "book_quotes")
    made = open_rig(tmp_path / "store", recipes=tmp_path)
    deps = made.app.dependencies
    yield Rig(replace(made.app, dependencies=replace(deps, context_sources=(*deps.context_sources, BookSource()))), made.runtime)
    made.app.close()


def _plan(*books):
    return plain(relevant_turns=[], turn_relevance={}, relevant_memory_keys=[], relevant_books=list(books), confidence=0.9)


def _answer(*quotes):
    return json.dumps({"session_preferences": {}, "prior_turns": [], "book_quotes": list(quotes), "source_references": []})


def _report(rig, key, phase):
    return next(p.report["facts"] for p in rig.turn(key).manifest.phases if p.phase == phase)


def test_a_registered_source_is_offered_loaded_rendered_cited_and_resolved(library):
    """From its header in RETRIEVAL's pack to the file behind the answer's citation."""
    library.say(retrieval=_plan("walden"), context_synthesis=_answer({"book": "walden", "quote": "live deliberately"}))
    key = library.ask("why the woods?")
    assert library.runtime.of("retrieval")[-1].document("book_headers") == '{"book": "walden"}'
    assert library.runtime.of("context_synthesis")[-1].document("book_texts") == f"=== BOOKS ===\n\n[1] {BOOKS['walden']}"
    section = library.section(key, 2)
    assert "### Books\n\n- live deliberately [1] (10.0 h)" in section
    assert [(s.label, s.path, s.description) for s in source_references(section)] == [("1", "books/walden.txt", "Book: walden")]
    (cited,) = library.app.answer_of(key).citations
    assert (cited["label"], cited["path"]) == ("1", "/library/books/walden.txt")
    assert _report(library, key, "retrieval_plan")["notices"] == ["one book is lent"]
    assert _report(library, key, "retrieval_plan")["sources"] == 1 == _report(library, key, "gathered_context")["sources"]


def test_a_record_of_a_registered_source_that_is_not_used_is_reported(library):
    """With its name, as those of the shipped sources are."""
    library.say(retrieval=_plan("walden"), context_synthesis=_answer())
    assert _report(library, library.ask(), "gathered_context")["sources_not_used"] == ["book walden"]


def test_a_missing_record_of_a_registered_source_halts(library):
    """004 section 9 holds for every source."""
    library.say(retrieval=_plan("emile"))
    assert "relevant_books: emile: expected a book" in library.halted(library.ask()).message


def test_a_registered_source_gives_up_its_items_by_its_priority(library):
    """Section 2 drops books before notes; what was dropped is named."""
    note = library.app.settings.root / "users/anna/notes/woods.md"
    note.parent.mkdir(parents=True)
    note.write_text("# Woods\n\nThe woods are near Concord.")
    quotes = [{"book": "walden", "quote": f"sentence {n} " + "of the woods and the pond and the cabin " * 20} for n in range(12)]
    answer = json.loads(_answer(*quotes)) | {"forever_knowledge": [{"note": "woods.md", "content": "The woods are near Concord."}]}
    library.say(retrieval=json.dumps(json.loads(_plan("walden")) | {"relevant_notes": ["woods.md"]}), context_synthesis=json.dumps(answer))
    key = library.ask()
    omitted = [item["source"] for item in _report(library, key, "gathered_context")["left_out_of_section_2"]]
    assert omitted and set(omitted) == {"book walden"} and "The woods are near Concord." in library.section(key, 2)
