"""What kind of content a text is: the five rules of specification 000, section 22, in their order."""

from pandora_dagster.contracts.compression_results import CompressionInput
from pandora_dagster.contracts.enums import ContentType


def content_type_of(content: CompressionInput) -> ContentType:
    """The stated content type, or the one detected in the original."""
    return content.content_type or detect_content_type(content.name, content.source)


def detect_content_type(name: str, content: str) -> ContentType:
    """The content type of a document by its name and its text (specification 000, section 22)."""
    if name == "context.md" or "## 0. User Query" in content:
        return ContentType.CONTEXT_DOC
    if name == "research.md" or "## Research Findings" in content:
        return ContentType.RESEARCH_DOC
    if "page_doc" in name or "ocr_items" in content:
        return ContentType.PAGE_DOC
    if name.startswith("tool:") or "tool_result" in name:
        return ContentType.TOOL_RESULT
    if "turn_" in name or "Previous Turn" in content:
        return ContentType.PRIOR_TURN
    return ContentType.GENERIC
