"""The answer of a turn as the person sees it. Section 5 may be a compression of it, once section 6 has judged it (001 section 7)."""

from collections.abc import Mapping

from pandora_dagster.text.sections import ContextDocument

RESPONSE_FILE = "response.md"
ANSWER_SECTION = 5


def whole_answer(document: ContextDocument, files: Mapping[str, str]) -> str:
    """The answer, whatever section 5 has become; a turn without `response.md` (recorded, or not answered yet) has its section alone."""
    stored = files.get(RESPONSE_FILE)
    return document.body(ANSWER_SECTION) if stored is None else stored.removesuffix("\n")
