"""PAGE_DOC: priority, confidence, and the shares of the budget."""

import json

from pandora_dagster.compression import Outcome, compress
from pandora_dagster.compression.condense.web_pages import condense_page
from pandora_dagster.compression.read.page_zones import Page, PageZone
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.documents.token_counter import TokenCounter


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
    result = compress(CompressionRequest(PAGE, content_type=ContentType.PAGE_DOC, target=330), counter)
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
    result = compress(CompressionRequest(PAGE[:-40], content_type=ContentType.PAGE_DOC, target=150), counter)
    assert result.text is None or counter.count(result.text) <= 150


def _shares(counter: TokenCounter, *, fields: int, sentences: int = 60, metadata: int = 60) -> tuple[int, int, int]:
    """Tokens of the fields, the narrative and the metadata that a page of one sure zone keeps in 1,000 tokens."""
    zone = {f"f{n}": f"value {n}" for n in range(fields)}
    page = Page(
        {f"title_{n}": f"heading {n}" for n in range(metadata)},
        (PageZone("pricing", 0.9, zone, "".join(f"Person {n} wrote of the lamp. " for n in range(sentences * 3)), "raw_text"),),
    )
    made = json.loads(condense_page(page, 1_000, counter))
    kept = made.pop("zones")[0] if made["zones"] else {}
    text = kept.pop("raw_text", "")
    return tuple(counter.count(json.dumps(part, separators=(",", ":"))) if part else 0 for part in (kept, text, made))  # type: ignore[return-value]


def test_fields_text_and_metadata_share_the_budget(counter: TokenCounter) -> None:
    """70 % for fields, 20 % for narrative, 10 % for metadata; what fields leave over goes to the narrative."""
    fields, text, metadata = _shares(counter, fields=90)
    assert 600 < fields <= 700 and 100 < text <= 300 and 50 < metadata <= 110
    fewer, longer, _ = _shares(counter, fields=10)
    assert fewer < 150 and 600 < longer <= 900
