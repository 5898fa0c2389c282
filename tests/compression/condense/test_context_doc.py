"""context.md condensed by its sections."""

import pytest

from pandora_dagster.compression.compressor import compress
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.token_counter import TokenCounter

ASKED = "## 0. User Query\n\nFind a laptop under $900 that must not weigh more than 2 kg.\n\n"
ROWS = "\n".join(f"Row {n} says that model M-{n} costs ${500 + n}.00 and ships in {n} days." for n in range(80))
TEXT = (
    "# Turn 8\n\n" + ASKED + "## 1. Reflection\n\n**Decision:** PROCEED\n\n## 2. Gathered Context\n\n"
    "### Session Preferences\n\n| key | value | turn |\n|---|---|---|\n| budget | $900 | 7 |\n| brand | not Asus | 7 |\n\n"
    "### Cached Research\n\nThe LOQ 15 costs $799.99 [1]. The Nitro V costs $749 [2], and weighs 2.1 kg.\n\n"
    "### Source References\n- [1] `turns/1/context.md` - prior turn\n- [2] `research_cache/x.json` - research\n\n"
    f"## 4. Tool Results\n\n### Result 1: web.search\nERROR: HTTP 503 from shop.example\n\n### Result 2: calculator\n{ROWS}\n"
)  # fmt: skip


def _made(target: int, counter: TokenCounter) -> str:
    made = compress(CompressionRequest(TEXT, content_type=ContentType.CONTEXT_DOC, target=target), counter)
    assert made.text is not None
    assert made.tokens <= target
    return made.text


@pytest.mark.parametrize("target", [110, 150, 180, 220, 260, 300, 500])
def test_what_is_cited_has_its_source(counter: TokenCounter, target: int) -> None:
    """Wherever a citation stands, the line that tells its source stands too, and every section has its heading."""
    made = _made(target, counter)
    body = made.partition("### Source References")[0]
    for number in (1, 2):
        if f"[{number}]" in body:
            assert f"\n- [{number}] " in made
    assert [s.number for s in ContextDocument.parse(made).sections] == [0, 1, 2, 4]


def test_preferences_stand_beside_a_large_result(counter: TokenCounter) -> None:
    """A section that is small beside the newest stays whole."""
    assert "| brand | not Asus | 7 |" in _made(300, counter)


def test_a_target_below_the_headings_keeps_the_query_as_it_was(counter: TokenCounter) -> None:
    """The query stands in its section, what must stay under the last one."""
    made = _made(55, counter)
    assert ASKED in made
    assert "also: ##" not in made
    assert "ERROR: HTTP 503" in ContextDocument.parse(made).sections[-1].body
