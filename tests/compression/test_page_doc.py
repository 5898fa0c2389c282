"""PAGE_DOC: priority, confidence, and the shares of the budget."""

import json

from pandora_dagster.compression import Outcome, compress
from pandora_dagster.contracts.words import ContentType
from pandora_dagster.text.tokens import TokenCounter


def _zone(kind: str, confidence: float, number: int) -> dict[str, object]:
    fields = {"name": f"Product P{number}", "price": f"${number}99.00", "description": "Long and winding words. " * 6}
    return {"type": kind, "confidence": confidence, "fields": fields, "raw_text": f"Reviewers of P{number} wrote a lot. " * 8}


PAGE = json.dumps(
    {
        "url": "https://shop.example/p",
        "timestamp": "2026-01-04",
        "zones": [_zone("navigation", 0.9, 1), _zone("pricing", 0.95, 2), _zone("product_info", 0.6, 3), _zone("reviews", 0.3, 4)],
        "ocr_items": [],
    }
)


def test_sure_zones_stay_doubtful_ones_shrink_the_rest_is_dropped(counter: TokenCounter) -> None:
    """Pricing stands first and whole, a doubtful zone has its key fields, a zone under 0.5 is dropped by rule."""
    result = compress(PAGE, target_tokens=330, content_type=ContentType.PAGE_DOC, counter=counter)
    assert result.text
    page = json.loads(result.text)
    assert page["url"] == "https://shop.example/p"
    assert page["zones"][0]["type"] == "pricing"
    assert page["zones"][0]["fields"]["description"]
    assert set(page["zones"][1]["fields"]) == {"name", "price"}
    outcomes = {v.text: v.outcome for v in result.verdicts}
    assert outcomes["$499.00"] is Outcome.DROPPED_BY_RULE
    assert outcomes["$299.00"] is Outcome.KEPT


def test_a_broken_page_is_condensed_as_text(counter: TokenCounter) -> None:
    """What is no JSON still gives a text or a reason."""
    result = compress(PAGE[:-40], target_tokens=150, content_type=ContentType.PAGE_DOC, counter=counter)
    assert result.text is None or counter.count(result.text) <= 150
