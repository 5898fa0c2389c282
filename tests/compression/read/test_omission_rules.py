"""Dropped by rule (DECISIONS 5): left-overs of HTML and the less sure of two equal claims; the rule is named."""

import json
import time

import pytest

from pandora_dagster.compression import Outcome, build_ledger, compress, verify
from pandora_dagster.compression.read.omission_rules import HTML_RULE, Rules, leftovers, weaker_claims
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.documents.token_counter import TokenCounter

CLAIM = "The Lenovo LOQ costs $697"
FILLER = "\n".join(f"The shop in street {n} opened in {1900 + n} and sells lamps to people who walk by." for n in range(60))


def verdicts(text: str, candidate: str, kind: ContentType = ContentType.RESEARCH_DOC) -> dict[str, tuple[Outcome, str]]:
    """Fact -> what became of it, and why."""
    return {v.text: (v.outcome, v.reason) for v in verify(build_ledger(text, kind), text, candidate).verdicts}


PAGE = (
    '<div class="price-box" data-sku="XK-2291"><span>Brass lamp</span> $49.50</div>\n<!-- build 2026-01-04 -->\n'
    '<script>var cart = "AB-9931"; track(77812);</script>\n<p>It must not exceed 60 watts.</p> <a href="https://shop.example/lamp?id=7">Buy</a>\n'
)


def test_left_overs_of_a_page_are_dropped_by_rule() -> None:
    """What stands in tags, comments and scripts goes, and the verdict says by which rule; the page's own words and links do not."""
    found = verdicts(PAGE, "Brass lamp $49.50\nIt must not exceed 60 watts. https://shop.example/lamp?id=7 Buy", ContentType.PAGE_DOC)
    for gone in ("price-box", "XK-2291", "2026-01-04", "AB-9931"):
        assert found[gone] == (Outcome.DROPPED_BY_RULE, HTML_RULE)
    for kept in ("$49.50", "It must not exceed 60 watts.", "https://shop.example/lamp?id=7"):
        assert found[kept][0] is Outcome.KEPT
    lost = verdicts(PAGE, "Brass lamp", ContentType.PAGE_DOC)
    assert {lost[t][0] for t in ("$49.50", "https://shop.example/lamp?id=7", "It must not exceed 60 watts.")} == {Outcome.MISSING}


def test_only_extracted_pages_have_left_overs() -> None:
    """The file that a tool read is content with its tags, and so is what a fence or backticks of a page show."""
    assert verdicts(PAGE, "Brass lamp", ContentType.TOOL_RESULT)["XK-2291"][0] is Outcome.MISSING
    assert list(leftovers("Use `<div>` so:\n```html\n<div id='A-1'>x</div>\n```\nwhere 3 <b and a > b, <loud>cries</loud>\n")) == []


@pytest.mark.parametrize("as_json", [False, True])
def test_a_page_is_condensed_without_its_left_overs(as_json: bool, counter: TokenCounter) -> None:
    """Where they alone are too much, the page itself stays whole."""
    body = PAGE.replace("</span>", '</span><i class="ico-12"></i>') + "".join(f'<br data-x="Q{n}-77"/>' for n in range(80))
    text = json.dumps({"url": "https://shop.example/lamp", "zones": [{"type": "pricing", "raw_text": body}]}) if as_json else body
    made = compress(CompressionRequest(text, content_type=ContentType.PAGE_DOC, target=120), counter)
    assert made.text and "Brass lamp" in made.text and "$49.50" in made.text and "Q7-77" not in made.text and "class=" not in made.text
    assert made.counts["dropped_by_rule"] > 80 and made.verification.facts_preserved
    assert made.counts["missing"] == 0


FORMS = {
    "lines": (f"- {CLAIM} (bestbuy.com) (confidence 0.9)\n", f"- {CLAIM} (walmart.com) (confidence 0.6)\n", "{0}{1}"),
    "a table": (
        f"| {CLAIM} | bestbuy.com | 0.90 |\n",
        f"| {CLAIM} | walmart.com | 0.60 |\n",
        "| Claim | Source | Confidence |\n|---|---|---|\n{0}{1}",
    ),
    "JSON": (
        json.dumps({"claim": CLAIM, "source": "bestbuy.com", "confidence": 0.9}),
        json.dumps({"claim": CLAIM, "source": "walmart.com", "confidence": 0.6}),
        '{{"claims": [{0}, {1}]}}\n',
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("surer_first", [True, False])
def test_the_less_confident_of_equal_claims_is_dropped_by_rule(form: str, surer_first: bool) -> None:
    """Its source and its figure go with it, in whatever form claims stand; the price that both tell is kept."""
    surer, weaker, frame = FORMS[form]
    text = frame.format(*((surer, weaker) if surer_first else (weaker, surer)))
    found = verdicts(text, frame.format(surer, "").replace(", ]", "]"))
    dropped = {told for told, (outcome, _) in found.items() if outcome is Outcome.DROPPED_BY_RULE}
    assert any("walmart" in told for told in dropped) and not any("bestbuy" in told for told in dropped)
    assert {found[t][1] for t in dropped} == {"claims: an equal one of confidence 0.9 stands"}
    assert {outcome for outcome, _ in found.values()} == {Outcome.KEPT, Outcome.DROPPED_BY_RULE}
    assert not any(told == "$697" for told in dropped)


@pytest.mark.parametrize("form", FORMS)
def test_without_the_surer_claim_no_rule_drops_the_other(form: str) -> None:
    """The rule is to keep the surer one: where neither stands both are missing."""
    surer, weaker, frame = FORMS[form]
    outcomes = {outcome for outcome, _ in verdicts(frame.format(surer, weaker), "A shop sells computers.").values()}
    assert outcomes == {Outcome.MISSING}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The LOQ costs $697 (a.com) (confidence 0.9)", "The LOQ costs $699 (b.com) (confidence 0.6)"),
        ("The LOQ costs $697 (a.com) (confidence 0.9)", "The LOQ costs €697 (b.com) (confidence 0.6)"),
        ("It costs over $500 (a.com) (confidence 0.9)", "It costs under $500 (b.com) (confidence 0.6)"),
        ("The LOQ is in stock (a.com) (confidence 0.9)", "The LOQ is not in stock (b.com) (confidence 0.6)"),
        ("Ann beats Ben 3 times (a.com) (confidence 0.9)", "Ben beats Ann 3 times (b.com) (confidence 0.6)"),
        ("The LOQ costs $697 (a.com) (confidence 0.9)", "The LOQ costs $697 (b.com) (confidence 0.9)"),
        ("The LOQ costs $697 (a.com)", "The LOQ costs $697 (b.com)"),
        ("The LOQ costs $697 (a.com) (confidence 0.9)", "The LOQ costs $697 (b.com) (confidence 7)"),
    ],
)
def test_claims_that_differ_or_are_as_sure_both_stay(one: str, other: str) -> None:
    """Other values, other words, another order, a denial, the same or no confidence: no rule lets one go."""
    assert weaker_claims(f"- {one}\n- {other}\n") == ()


def test_equal_is_what_says_the_same() -> None:
    """Articles, case and the spelling of an amount make no other claim; of three the surest stays."""
    said = (
        "The LOQ costs $1,299.00 (a.com), confidence: 70%",
        "A LOQ costs 1299 USD [3] (confidence 0.65)",
        "LOQ costs $1,299 (0.9 confidence)",
    )
    assert [w.start for w in weaker_claims("\n".join(said))] == [0, len(said[0]) + 1]


def test_the_query_and_what_persons_say_know_no_such_rule() -> None:
    """Section 0 stays verbatim, and nobody's words in a conversation are let go."""
    surer, weaker, _ = FORMS["lines"]
    context = f"## 0. User Query\n\n{weaker}\n## 2. Gathered Context\n\n{surer}{weaker}"
    rules = Rules(context, ContentType.CONTEXT_DOC)
    assert rules.shorter == f"## 0. User Query\n\n{weaker}\n## 2. Gathered Context\n\n{surer}"
    talk = f"user: {CLAIM} (confidence 0.6)\nassistant: {CLAIM} (confidence 0.9)\nuser: Thanks.\n"
    assert Rules(talk, ContentType.GENERIC).shorter == talk


@pytest.mark.parametrize("weak", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)])
def test_a_list_of_claims_stays_json(weak: tuple[int, ...]) -> None:
    """Whichever of its members go."""
    claims = [{"claim": CLAIM, "source": f"s{n}.com", "confidence": 0.3 if n in weak else 0.8} for n in range(3)]
    kept = json.loads(Rules(json.dumps({"claims": claims}, indent=1), ContentType.RESEARCH_DOC).shorter)
    assert kept["claims"] == [c for n, c in enumerate(claims) if n not in weak]


def test_research_is_condensed_without_its_weaker_claims(counter: TokenCounter) -> None:
    """The surer claim stands, the other is told with its rule."""
    surer, weaker, _ = FORMS["lines"]
    text = f"## Research Findings\n\n{weaker}{FILLER}\n{surer}"
    made = compress(CompressionRequest(text, content_type=ContentType.RESEARCH_DOC, target=300), counter)
    assert made.text and "bestbuy.com" in made.text and "walmart.com" not in made.text
    assert {v.reason for v in made.verdicts if v.outcome is Outcome.DROPPED_BY_RULE} == {"claims: an equal one of confidence 0.9 stands"}


@pytest.mark.parametrize(
    "piece",
    [
        "<!-- ",
        "<div a=x ",
        "<script>",
        '<div class="',
        "{",
        '{"claim": "a b c", "confidence": 0.5}, ',
        "confidence 0.5 ",
        "- a b c (confidence 0.5)\n",
    ],
)
def test_rules_are_linear(piece: str) -> None:
    """A megabyte of what begins a left-over or a claim and never ends."""
    text = piece * (1_000_000 // len(piece))
    began = time.monotonic()
    _ = Rules(text, ContentType.RESEARCH_DOC).shorter
    assert time.monotonic() - began < 8
