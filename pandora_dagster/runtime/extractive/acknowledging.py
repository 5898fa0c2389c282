"""The answer to a query that asks for nothing. Knows the query's words; reads no document, so that nothing is claimed of one."""

from pandora_dagster.runtime.extractive.questions import is_courtesy, requests, tells
from pandora_dagster.runtime.extractive.statements import stated
from pandora_dagster.runtime.extractive.templates import TEMPLATES
from pandora_dagster.text.sentences import sentences


def acknowledged(query: str) -> str:
    """The fixed words for a query that only tells, with what it tells verbatim, or only thanks; "" for one that asks for anything."""
    facts = {sentence for sentence, _ in stated(query)}
    told = [s for s in sentences(query) if s in facts or tells(s)]
    rest = [s for s in sentences(query) if s not in told and not is_courtesy(s)]
    if rest or any(requests(s) for s in told):
        return ""
    return " ".join((TEMPLATES["noted"], *told)) if told else TEMPLATES["welcome"] if query.strip() else ""
