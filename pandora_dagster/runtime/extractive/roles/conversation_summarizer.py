"""Role `conversation_summarizer` (specification 002, section 3): continues a session's summary by whole sentences of its newer turns.

Every sentence is verbatim and says which turn it comes from; the oldest give way first, limits and decisions last.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from pydantic import ValidationError

from pandora_dagster.compression.rolling_summary import Exchange, binding_statements, fit_digest, read_exchanges, with_turn_number
from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.user.conversations import ConversationDigest
from pandora_dagster.language.courtesy import without_greeting
from pandora_dagster.language.cues import ends_as_question
from pandora_dagster.language.detection import language_of
from pandora_dagster.language.no_result_phrases import is_no_result
from pandora_dagster.language.sentences import sentences
from pandora_dagster.language.tokens import tokens
from pandora_dagster.runtime.extractive.output_budget import Draft, fit_draft
from pandora_dagster.runtime.extractive.roles.level_summarizers import Statement, choose_statements
from pandora_dagster.runtime.extractive.roles.turn_summarizer import choose_topics

_MAX_DIGEST_WORDS, _WORD_STEP = 500, 20
_NARRATIVE_SHARE = 0.4
"""Share of the answer's tokens that the narrative takes; lists have the rest."""
_MAX_SENTENCE_WORDS = 45
_FIGURE = re.compile(r"\d")
_OPEN_MATTER = re.compile(r"\b(?:still open|unresolved|undecided|not yet|pending|to be decided|remains open)\b", re.IGNORECASE)
_NEED_OF_OTHERS = re.compile(
    r"\b(?:my|our) [a-z]+(?: [a-z]+)? (?:needs?|wants?|prefers?|likes?|hates?|has to|cannot|can't|would like)\b", re.IGNORECASE
)
_CITATION = re.compile(r"(?<!\s)\s*\[\d{1,4}\](?![(\[:])")
_MIN_ANSWERED_SHARE = 0.5
"""Share of a question's content words in a later turn from which on it is no longer open."""


def summarize_conversation(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The digest of what `previous_summary` says and of the exchanges in `turns`, within the tokens that the call may write."""
    exchanges = read_exchanges(pack.document("turns"))
    whole = _extend_digest(
        _read_previous(pack.document("previous_summary")), exchanges, int(pack.max_output_tokens * _NARRATIVE_SHARE), counter
    )

    def make(n: int) -> ConversationDigest:
        return fit_digest(whole, n * _WORD_STEP)

    return fit_draft(make, _MAX_DIGEST_WORDS // _WORD_STEP, pack.max_output_tokens, counter)


def _read_previous(text: str) -> ConversationDigest:
    """The digest that `text` is; one without a word where it is none."""
    try:
        return ConversationDigest.model_validate_json(text)
    except ValidationError:
        return ConversationDigest.model_construct(summary="")


def _extend_digest(
    before: ConversationDigest, exchanges: Sequence[Exchange], narrative_tokens: int, counter: TokenMeasure
) -> ConversationDigest:
    asked, answered = "\n".join(e.asked for e in exchanges), "\n".join(e.answered for e in exchanges)
    bound = [(field, text, e.number) for e in exchanges for field, text in binding_statements(e)]
    open_now = [with_turn_number(s, e.number) for e in exchanges for s in _statements(e) if _OPEN_MATTER.search(s)]
    of_others = [with_turn_number(s, e.number) for e in exchanges for s in _short_sentences(e.asked) if _NEED_OF_OTHERS.search(s)]
    themes = [*before.key_themes, *choose_topics(asked, answered)]
    candidates = [*(Statement(0, s) for s in sentences(before.summary)), *_new_statements(exchanges)]
    narrative = choose_statements(candidates, narrative_tokens, counter.count, joined=_join_lines).split("\n")
    said = {*narrative, *(text for _, text, _ in bound)}
    return ConversationDigest(
        summary=" ".join(s for s in narrative if s) or ", ".join(themes),
        key_themes=_deduplicate(themes),
        journey=" ".join(_journey(before, exchanges)),
        unresolved_topics=_deduplicate([*before.unresolved_topics, *open_now]),
        agreed_facts=_deduplicate([*before.agreed_facts, *_figure_sentences(exchanges, said)]),
        user_needs=_deduplicate([*before.user_needs, *(with_turn_number(t, n) for f, t, n in bound if f == "user_needs")]),
        others_needs=_deduplicate([*before.others_needs, *of_others]),
        open_questions=_deduplicate(_open_questions(before, exchanges)),
        agreements=_deduplicate([*before.agreements, *(with_turn_number(t, n) for f, t, n in bound if f == "agreements")]),
    )


def _deduplicate(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))


def _short_sentences(text: str) -> list[str]:
    """Whole sentences without citation labels; one too long for an item stays out, never cut."""
    return [s for part in sentences(text) if 0 < len((s := _CITATION.sub("", part)).split()) <= _MAX_SENTENCE_WORDS]


def _statements(exchange: Exchange) -> list[str]:
    return [s for text in (exchange.asked, exchange.answered) for s in _short_sentences(text) if not ends_as_question(s)]


def _new_statements(exchanges: Sequence[Exchange]) -> Iterator[Statement]:
    """What was learned, never what was asked: of each turn what binds and what was answered first, or else what the user stated."""
    for exchange in exchanges:
        answered = [s for s in _statements_without_greeting(exchange.answered) if not is_no_result(s)][:1]
        stated = [Statement(exchange.number, s) for s in _statements_without_greeting(exchange.asked)]
        yield from [s for s in stated if s.rank <= 1] or ([] if answered else stated[:1])
        yield from (Statement(exchange.number, text) for text in answered)


def _join_lines(statements: Sequence[Statement]) -> str:
    return "\n".join(statement.text for statement in statements)


def _statements_without_greeting(text: str) -> list[str]:
    """Statements without the greeting in front."""
    return [rest for s in _short_sentences(text) if not ends_as_question(s) and (rest := without_greeting(s))]


def _journey(before: ConversationDigest, exchanges: Sequence[Exchange]) -> list[str]:
    """The user's first statement and the newest one."""
    stated = [s for e in exchanges for s in _statements_without_greeting(e.asked)[:1]]
    first = sentences(before.journey)[:1]
    return list(_deduplicate([*(first or stated[:1]), *stated[-1:]]))


def _figure_sentences(exchanges: Sequence[Exchange], known: set[str]) -> Iterable[str]:
    """Of each answer the first sentence with a figure that is not `known` from elsewhere in the digest."""
    for exchange in exchanges:
        figures = [s for s in _short_sentences(exchange.answered) if _FIGURE.search(s) and not ends_as_question(s) and s not in known]
        yield from (with_turn_number(s, exchange.number) for s in figures[:1])


def _open_questions(before: ConversationDigest, exchanges: Sequence[Exchange]) -> Iterable[str]:
    """Questions without an answer, and what the last answer asks back. One that a later turn takes up is no longer open."""
    later = _content_keys("\n".join(f"{e.asked}\n{e.answered}" for e in exchanges))
    for question in before.open_questions:
        asked = _content_keys(question)
        if not asked or len(asked & later) < _MIN_ANSWERED_SHARE * len(asked):
            yield question
    for place, exchange in enumerate(exchanges, start=1):
        open_here = exchange.answered if place == len(exchanges) else ""
        for sentence in _short_sentences(open_here if exchange.answered else exchange.asked):
            if ends_as_question(sentence):
                yield with_turn_number(sentence, exchange.number)


def _content_keys(text: str) -> frozenset[str]:
    return frozenset(token.key for token in tokens(text, language_of(text)))
