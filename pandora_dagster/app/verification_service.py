"""Verification of a shortened text against its original, for the command line and for Python programs; `compression` does the work.

from pandora_dagster.app.verification_service import verify_texts
verify_texts(open("long.md").read(), open("short.md").read())["missing"]
"""

from typing import Any

from pandora_dagster.archive.text_comparison import TextComparison, compare
from pandora_dagster.compression.verification.report import report_of
from pandora_dagster.compression.verification.text_facts import find_facts
from pandora_dagster.compression.verification.verifier import verify


def verify_texts(original: str, shortened: str) -> dict[str, Any]:
    """What became of the facts of `original` in `shortened`, whoever shortened it.

    The answer has `facts` (`total` and a number for each outcome) and the lists `kept`, `missing`, `changed`, `left_out`, `invented` and
    `for_review`; each entry with its place in both texts. Credentials are removed first: places are those of the redacted texts."""
    text_facts = find_facts(original)
    return report_of(text_facts, verify(text_facts, shortened))


def compare_texts(original: str, shortened: str) -> TextComparison:
    """Both texts in rows with their facts, for a page that shows them side by side. Credentials are removed."""
    return compare(find_facts(original), shortened)
