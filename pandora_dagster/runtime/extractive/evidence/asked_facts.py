"""Whether what is known states what a question asks of a thing, and not only something else about that thing."""

from collections.abc import Sequence

from pandora_dagster.language.requests.asked_values import has_asked_value, values_of
from pandora_dagster.runtime.extractive.evidence.source_passages import Passage
from pandora_dagster.runtime.extractive.research.asked_question import AskedQuestion, is_held, share, terms_of
from pandora_dagster.runtime.extractive.research.page_statements import least_share


def states_asked(passage: Passage, question: AskedQuestion) -> bool:
    """Whether a passage has a value of the asked kind and, where a thing is named, what is asked of it: a weight is no price."""
    text, asked = passage.text, question.text.lower()
    if has_asked_value(question.kind):
        values = values_of(question.kind, text, passage.language or question.language)
        if not any(text[value.start : value.end].strip().lower() not in asked for value in values):
            return False
    return not question.names or share(question.matter_terms, terms_of(text) | passage.above) >= least_share(question.kind)


def is_asked_known(passages: Sequence[Passage], query: str) -> bool:
    """Whether a passage states what is asked, from a source that has the names of the question."""
    question = AskedQuestion(query)
    terms: dict[str, set[str]] = {}
    for passage in passages:
        terms.setdefault(passage.source, set()).update(terms_of(passage.text), passage.above)
    named = {source for source, held in terms.items() if all(is_held(name, frozenset(held)) for name in question.name_terms)}
    return any(passage.source in named and states_asked(passage, question) for passage in passages)
