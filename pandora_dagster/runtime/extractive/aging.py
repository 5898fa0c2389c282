"""What section 2 says of the age of its sources: research that has expired, pages to be looked at again. Knows their `_meta` alone."""

import re
from collections.abc import Mapping

from pandora_dagster.runtime.extractive.headers import as_list, as_mapping, as_number
from pandora_dagster.runtime.extractive.labels import Labels
from pandora_dagster.runtime.extractive.templates import TEMPLATES
from pandora_dagster.text.meta import subsection_metas

_FRESHNESS = r"^\| [^|\n]*\[{label}\] \|.*\| (\d+(?:\.\d+)?)h \|$"
"""The last cell of a page's row: how long ago it was seen."""


def ages(body: str, labels: Labels) -> Mapping[str, str]:
    """Label -> how old its source is, where that must be told with it: `expired 42.0 hours ago`, `seen 40.0 hours ago`."""
    known = subsection_metas(body)
    research, pages = known.get("Cached Research Intelligence", {}), known.get("Visit Record Data", {})
    told: dict[str, str] = {}
    left = as_number(as_mapping(research).get("expires_hours"))
    if as_mapping(research).get("stale") and left is not None:
        told |= {s.label: _ago("expired", f"{-left}") for s in labels.sources if s.path.startswith("research_cache/")}
    for visit in as_list(as_mapping(pages).get("verify")):
        for source in (s for s in labels.sources if s.path == f"webpage_cache/{visit}.json"):
            if found := re.search(_FRESHNESS.format(label=source.label), body, re.MULTILINE):
                told[source.label] = _ago("seen", found.group(1))
    return told


def is_expired(date: str) -> bool:
    """Whether what stands before a line says that its source has expired."""
    return date.startswith(TEMPLATES["expired"])


def _ago(what: str, hours: str) -> str:
    return f"{TEMPLATES[what]} {hours} {TEMPLATES['hours']} {TEMPLATES['ago']}"
