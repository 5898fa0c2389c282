"""A digest as a person reads it: each item with its source, as text with links; the hashed text stays what it was."""

from hashlib import sha256

import pytest

from pandora_dagster.archive.digest_reading import HEADINGS, digest_items, read_digest
from pandora_dagster.archive.lineage_proof import text_by_hash
from pandora_dagster.contracts.lineage import DocumentId
from pandora_dagster.contracts.user.user_memory import NotableFact
from tests.archive.level_store import EXAMPLE, levels, run_levels


@pytest.fixture
def ctx(app):
    """The levels of the example: three sessions and a digest of them."""
    ctx = levels(app)
    run_levels(ctx)
    return ctx


def test_each_item_names_a_session_that_supports_it(ctx):
    """An item that stands in one narrative word for word has that session."""
    digest, narratives = ctx.levels.digest(EXAMPLE), list(ctx.levels.narratives(EXAMPLE))
    items = list(digest_items(digest, narratives))
    assert len(items) >= 3 and {item.field for item in items} <= set(HEADINGS)
    verbatim = [(item, n.session_id) for item in items for n in narratives if item.text.rstrip(".") in n.text]
    assert verbatim and all(session in item.sessions for item, session in verbatim)
    foreign = digest.model_copy(update={"fields": digest.fields.model_copy(update={"key_decisions": ("The boiler stays at 30 kg.",)})})
    assert next(item for item in digest_items(foreign, narratives) if item.field == "key_decisions").sessions == ()


def test_the_reading_is_plain_text_with_a_link_at_each_source(ctx):
    """No JSON and no Python list; facts with their day and turn, one that ended with the day of its end."""
    fact = NotableFact(id="f1", category="History", fact="I like oak", turn=2, stated_at="2026-01-04T10:00:00Z")
    ended = fact.model_copy(update={"id": "f2", "fact": "I like pine", "superseded_by": "f1", "superseded_at": "2026-01-06T10:00:00Z"})
    stored = ctx.levels.digest(EXAMPLE)
    digest = stored.model_copy(update={"facts": stored.facts.model_copy(update={"facts": (fact, ended)})})
    reading = read_digest(digest, ctx.levels.narratives(EXAMPLE))
    assert "{" not in reading.text and "None" not in reading.text and "'" not in reading.text.replace("n't", "").replace("'s", "")
    assert "- I like oak  [2026-01-04, turn_000002]\n- I like pine  [2026-01-04, until 2026-01-06, turn_000002]\n" in reading.text
    linked = {(reading.text[mark.start : mark.end], mark.href) for mark in reading.marks}
    assert ("turn_000002", "example:turn_000002/context.md") in linked
    assert {name for name, href in linked if href == f"example:session/{name}"} <= {n.session_id for n in stored.narratives}


def test_the_page_shows_the_reading_and_the_hash_proves_the_stored_text(app, ctx):
    """What links name is the text as before; only the page differs."""
    document, digest = DocumentId.parse("example:digest"), ctx.levels.digest(EXAMPLE)
    block = app.lineage.view(document, is_whole=False).blocks[0]
    assert block.document == "example:digest" and block.pane.text == read_digest(digest, ctx.levels.narratives(EXAMPLE)).text
    assert any(mark.href.startswith("example:session/") for mark in block.pane.marks)
    hashed, fault = text_by_hash("example:digest", digest.sha, app.lineage.texts())
    assert fault == "" and sha256(hashed.encode()).hexdigest() == digest.sha and hashed == digest.text
