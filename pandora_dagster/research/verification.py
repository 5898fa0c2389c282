"""What code can verify of a claim: the quote is in the visible text of the page."""

import re

from pandora_dagster.contracts.web.page_doc import PageDoc

_BETWEEN = re.compile(r"[\s|]+")


def is_in_page(quote: str, page: PageDoc) -> bool:
    """Whether the words of `quote` are one after another in the visible text of the page; blanks and the bars of tables do not count."""
    wanted = _BETWEEN.sub("", quote)
    return bool(wanted) and wanted in _BETWEEN.sub("", "\n".join(zone.text for zone in page.zones if zone.visible))
