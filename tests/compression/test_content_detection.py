"""The five rules of detection, in their order."""

import pytest

from pandora_dagster.compression.content_detection import detect_content_type
from pandora_dagster.contracts.enums import ContentType


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("context.md", "ocr_items", ContentType.CONTEXT_DOC),
        ("x", "## 0. User Query\n", ContentType.CONTEXT_DOC),
        ("research.md", "", ContentType.RESEARCH_DOC),
        ("page_doc_1", "## Research Findings", ContentType.RESEARCH_DOC),
        ("page_doc_1", "", ContentType.PAGE_DOC),
        ("tool:x", '{"ocr_items": []}', ContentType.PAGE_DOC),
        ("tool:x", "", ContentType.TOOL_RESULT),
        ("my_tool_result", "", ContentType.TOOL_RESULT),
        ("turn_000811", "", ContentType.PRIOR_TURN),
        ("x", "Previous Turn: hello", ContentType.PRIOR_TURN),
        ("x", "hello", ContentType.GENERIC),
    ],
)
def test_the_first_rule_that_fits_decides(name: str, content: str, expected: ContentType) -> None:
    """Name and content are looked at in the order of the rules."""
    assert detect_content_type(name, content) is expected
