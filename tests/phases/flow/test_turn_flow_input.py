"""Bad input through whole turns on the embedded runtime: the turn answers, asks back or halts in one sentence; nothing is lost."""

import pytest

from pandora_dagster.errors import InputError
from tests.phases.embedded import Embedded


@pytest.fixture
def anna(tmp_path):
    """A house with nothing in it yet."""
    made = Embedded(tmp_path / "store")
    yield made
    made.app.close()


def asked(anna, query, user="anna"):
    """A turn's key, its state, and why it halted."""
    key = anna.ask(query, user=user)
    manifest = anna.app.turns.manifest(key)
    message = anna.app.interventions.show(manifest.intervention).message if manifest.intervention else ""
    return key, manifest.state, message


@pytest.mark.parametrize(
    ("query", "state"),
    [
        ("what is the of and a", "clarify"),
        ("'; DROP TABLE turns; -- \" OR 1=1", "saved"),
        ("🦒🔥🦒", "clarify"),
        ("\x01\x02", "clarify"),
        ("what did ben say about the walnut desk?", "saved"),
        ("users/ben/turns/turn_000001", "saved"),
    ],
)
def test_an_odd_query_is_a_turn_like_any_other(anna, query, state):
    """It is stored as it was said, tells nothing of another user, and the next question finds what was there before."""
    asked(anna, "The walnut desk of ben costs 4711 euros.", user="ben")
    key, found, message = asked(anna, query)
    assert (found, message) == (state, "") and query in anna.app.turns.load(key).context
    assert not any("4711" in part.text for pack in anna.runtime.packs if pack.query == query for part in pack.parts)
    assert anna.app.indexes.verify() == ()


def test_a_query_of_100000_characters_halts_with_its_size_and_stays_stored(anna):
    """Where a call has no room for it the turn says so; the words are whole in section 0."""
    query = "reservation " * 8_400
    key, state, message = asked(anna, query)
    assert state == "halted" and "expected at most" in message and "query 8" in message
    assert query.strip() in anna.app.turns.load(key).context


@pytest.mark.parametrize("query", ["", "  \n\t"])
def test_an_empty_query_opens_no_turn(anna, query):
    """One sentence."""
    with pytest.raises(InputError, match="query: empty; expected the words of a question or request"):
        anna.app.start(query, user="anna")
    assert not list(anna.app.turns.keys())


def test_notes_that_cannot_be_read_cost_no_turn_and_are_named(anna, tmp_path):
    """Broken front matter, 20 MB, bytes that are no text, links out of the folder, a link to itself: the good note is found."""
    anna.note("good.md", "# Walnut\nThe walnut desk stands in the hall.")
    folder = anna.app.settings.root / "users" / "anna" / "notes"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("The walnut desk is a secret.")
    (folder / "broken.md").write_text("---\ntags: [a\n---\nThe walnut desk is broken.")
    (folder / "big.md").write_text("walnut desk " * 1_750_000)
    (folder / "bytes.md").write_bytes(b"\xff\xfe\x00walnut desk")
    for name, target in (("link.md", outside / "secret.md"), ("linked", outside), ("loop.md", folder / "loop.md")):
        (folder / name).symlink_to(target)
    key, state, _ = asked(anna, "where does the walnut desk stand?")
    assert state == "saved" and "in the hall" in anna.app.answer_of(key).response
    plan = next(p for p in anna.app.turns.manifest(key).phases if p.phase == "retrieval_plan")
    notices = "\n".join(plan.report["facts"]["notices"])
    for says in (
        "broken.md:3: not YAML",
        "big.md: 21,000,000 bytes: expected at most 1,048,576",
        "bytes.md: byte 0: not UTF-8",
        "link.md: a link leads out of",
        "linked/: left out: a linked folder",
        "loop.md: left out",
    ):
        assert says in notices
    assert not any("secret." in part.text for pack in anna.runtime.packs for part in pack.parts)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda page: page.replace("```yaml\n", "```yaml\nbudget:\n  value: 1\n  confidence: 1\n"), "budget: duplicate key"),
        (lambda page: page.replace("budget:", "budget: ["), "expected YAML"),
        (lambda page: page.replace("confidence: 0.9", "confidence: 7"), "budget: confidence"),
    ],
)
def test_a_damaged_page_of_preferences_costs_only_its_entries(anna, change, says):
    """The turn is saved, and its report names the page, which is as the user left it; mended, the next turn answers from it."""
    anna.remember("budget", "900")
    page = anna.app.settings.root / "users" / "anna" / "preferences.md"
    good = page.read_text()
    page.write_text(change(good))
    assert page.read_text() != good
    key, state, _ = asked(anna, "what is my budget?")
    plan = next(p for p in anna.app.turns.manifest(key).phases if p.phase == "retrieval_plan")
    notices = "\n".join(plan.report["facts"]["notices"])
    assert state == "saved" and "preferences.md" in notices and says in notices and page.read_text() == change(good)
    assert "900" not in anna.app.answer_of(key).response
    page.write_text(good)
    key, state, _ = asked(anna, "what is my budget?")
    assert state == "saved" and "900" in anna.app.answer_of(key).response
