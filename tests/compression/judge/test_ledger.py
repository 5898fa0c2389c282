"""The ledger of a text."""

import json

import pytest

from pandora_dagster.compression import FactKind, Outcome, Rank, build_ledger, verify
from pandora_dagster.contracts.enums import ContentType


def _ranks(text: str, content_type: ContentType = ContentType.GENERIC) -> dict[str, Rank]:
    return {f.text: f.rank for f in build_ledger(text, content_type).facts}


def test_what_a_person_says_and_a_call_uses_is_critical(transcript: str) -> None:
    """A person's values, binding constraints, errors and call arguments are critical; untouched results are details."""
    ranks = _ranks(transcript)
    critical = (
        "$90",
        "March 14, 2026",
        "card_5512",
        "2026-03-14",
        "I must not pay more than $90.",
        "Error: payment declined for card_5512",
    )
    assert [ranks[text] for text in critical] == [Rank.CRITICAL] * len(critical)
    assert ranks["TR33"] is Rank.DETAIL
    assert ranks["TR1"] is Rank.CRITICAL


def test_section_0_is_one_critical_fact() -> None:
    """The query of context.md is a fact as a whole, byte for byte."""
    text = "## 0. User Query\n\nfind a $500 laptop\n\n## 2. Gathered Context\n\nIt costs $450.\n"
    query = next(f for f in build_ledger(text, ContentType.CONTEXT_DOC).facts if f.kind is FactKind.QUERY)
    assert (query.rank, query.text) == (Rank.CRITICAL, "## 0. User Query\n\nfind a $500 laptop\n\n")


def test_no_credential_enters() -> None:
    """Neither texts nor subjects hold a credential."""
    text = 'user: my password is hunter2hunter2 and I pay $40.\nassistant: {"api_key": "zq81hgd7sk2k", "amount": 40}'
    held = " ".join((*(f.text for f in build_ledger(text).facts), *(w for f in build_ledger(text).facts for w in f.subject)))
    assert "hunter2" not in held
    assert "zq81hgd7sk2k" not in held
    assert "$40" in held


def test_spans_lead_to_the_text(transcript: str) -> None:
    """The span of a value holds it."""
    facts = [f for f in build_ledger(transcript).facts if f.kind in (FactKind.MONEY, FactKind.DATE, FactKind.IDENTIFIER)]
    assert facts
    assert all(f.text in transcript[f.start : f.end] or "\\" in transcript[f.start : f.end] for f in facts)


def test_a_value_stands_once() -> None:
    """A value that is said twice is one fact, with the subjects of both."""
    facts = [f for f in build_ledger("The ticket costs $40. The hotel costs $40.").facts if f.kind is FactKind.MONEY]
    assert len(facts) == 1
    assert {"ticket", "hotel"} <= set(facts[0].subject)


def test_the_count_of_rows_left_out_is_no_fact() -> None:
    """It tells of a compression, not of the matter: a later one may count otherwise."""
    assert [f.text for f in build_ledger("It costs $450.\n(49 more rows left out)\n").facts] == ["$450"]


def test_who_a_limit_binds() -> None:
    """Strict limits and settled matters are critical where no tool and no page speaks; looser words bind where a person speaks."""
    limit, loose, settled = "Guests must not smoke.", "He has to wait.", "We decided to rent the barn."
    for kind in (ContentType.GENERIC, ContentType.PRIOR_TURN, ContentType.RESEARCH_DOC, ContentType.CONTEXT_DOC):
        ranks = _ranks(f"{limit} {loose} {settled}", kind)
        assert (ranks[limit], ranks[loose], ranks[settled]) == (Rank.CRITICAL, Rank.IMPORTANT, Rank.CRITICAL)
    for kind in (ContentType.TOOL_RESULT, ContentType.PAGE_DOC):
        assert Rank.CRITICAL not in _ranks(f"{limit} {loose} {settled}", kind).values()
    assert _ranks(f"user: {loose}\nassistant: Good.", ContentType.PRIOR_TURN)[loose] is Rank.CRITICAL


def test_a_confirmation_is_critical() -> None:
    """What a person agrees to stays."""
    said = "Actually yes, go ahead with the $90 fee."
    assert _ranks(f"user: {said}\nassistant: Done.")[said] is Rank.CRITICAL


def test_a_number_in_an_idle_question_is_important() -> None:
    """A question for knowledge states nothing; one about the person's own matter does."""
    ranks = _ranks("user: Did Rome pay $900 for Athens?\nassistant: Yes.\nuser: Can you change my 3 seats to $77 ones?")
    assert ranks["$900"] is Rank.IMPORTANT
    assert ranks["$77"] is Rank.CRITICAL


def test_roles_with_a_capital_rank_like_others() -> None:
    """`User:` and `Human:` are persons where they take turns with an assistant, and names elsewhere."""
    for person, answer in (("User", "Assistant"), ("Human", "AI")):
        ranks = _ranks(f"{person}: I pay $40.\n{answer}: Which one?\n{person}: The blue one.")
        assert ranks["$40"] is Rank.CRITICAL
    assert _ranks("User: $40.\nThe form has one field.\nUser: $50.")["$40"] is Rank.IMPORTANT


@pytest.mark.parametrize("name", ("x", "xx", "a", ""))
@pytest.mark.parametrize("value", ("S", "ok", "y" * 200, ""))
def test_short_and_long_strings_of_json_hide_nothing_behind_them(name: str, value: str) -> None:
    """Names and values of any length are read as what they are; what stands behind them is found."""
    failed = {"sizes": [value, "M"], "error": "payment declined for card 5512"}
    found = build_ledger(f"tool pay: {json.dumps({name: failed, 'order': 'AA-17', 'paid': 55.5})}")
    assert {"AA-17", "55.5"} <= {f.text for f in found.facts}
    assert [f.text for f in found.critical] == ["payment declined for card 5512"]


@pytest.mark.parametrize("url", ("gs://box/q", "s3://vault/main", "ftp://ftp.example.org/a.zip", "https://a.example/b"))
def test_an_address_of_any_scheme_is_one(url: str) -> None:
    """Another address in its place is invented."""
    text = f"The backup lies at {url} since Monday, and nobody has touched it."
    assert [f.kind for f in build_ledger(text).facts if f.text == url] == [FactKind.URL]
    other = verify(build_ledger(text), text, text.replace(url, url.replace("a", "e").replace("q", "g")))
    assert other.of(Outcome.MUTATED, Outcome.INVENTED)


@pytest.mark.parametrize(
    ("candidate", "is_untrue"),
    [('{"booking": "VX55Q2", "refundable": true}', True), ("VX55Q2: refundable true", True), ("VX55Q2: refundable false", False)],
)
def test_true_and_false_do_not_change_places(candidate: str, is_untrue: bool) -> None:
    """A member's truth value is a value."""
    source = '{"booking": "VX55Q2", "refundable": false, "paid": true}'
    assert bool(verify(build_ledger(source), source, candidate).of(Outcome.INVENTED)) is is_untrue
