"""Roles `session_summarizer` and `digest_builder` (003): the statements that matter most, verbatim, within the tokens of the call."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pandora_dagster.compression.levels.level_check import trim_digest
from pandora_dagster.compression.levels.level_prompts import LIST_LIMITS
from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.user.summary_levels import ERROR_LABEL, LIMIT_LABEL, TOOLS_LABEL
from pandora_dagster.language.courtesy import is_courtesy
from pandora_dagster.language.cues import Cue, cues
from pandora_dagster.language.no_result_phrases import is_no_result
from pandora_dagster.language.sentences import sentences
from pandora_dagster.runtime.extractive.output_budget import Draft
from pandora_dagster.runtime.extractive.roles.text_shortener import target_tokens

_ITEM_NUMBER = re.compile(r"^\[\d+\] ")
_DAY_LABEL = re.compile(r"^\d{4}-\d\d-\d\d(?: \([^)\n]*\))?:(?: |$)")
_LABELS = (LIMIT_LABEL, TOOLS_LABEL, ERROR_LABEL)
_TOOL_NAME = re.compile(
    r"(?<![\w.@/-])[a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)+(?![\w@/-])(?!\.\w)|(?<![\w.@/-])[a-z]+(?:_[a-z]+)*\.(?:[a-z]+_[a-z]+|[a-z]{2,})(?=\()"
)
_DIGIT = re.compile(r"\d")
_MAX_SENTENCE_WORDS = 45


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, or a labelled line, of one entry."""

    entry: int
    text: str

    @property
    def is_labelled(self) -> bool:
        return self.text.startswith(_LABELS)

    @property
    def rank(self) -> int:
        """What a reader needs first is lowest: limits, decisions, errors, tools, other statements, questions."""
        if self.text.startswith(LIMIT_LABEL):
            return 0
        if self.text.startswith(TOOLS_LABEL):
            return 3
        found = cues(self.text)
        if Cue.QUESTION in found:
            return 5
        if self.text.startswith(ERROR_LABEL) or Cue.ERROR in found:
            return 2
        is_rule = Cue.FORCE in found and (Cue.NEGATION in found or bool(_DIGIT.search(self.text)))
        return 1 if is_rule or Cue.DECISION in found else 4


def summarize_session(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """003 level 2: whole statements of the entries in their order: limits and decisions first, then as many others as fit.

    Questions come last. Entries of courtesies alone leave their day and keywords.
    """
    text = pack.document("entries")
    statements = list(_statements(text))
    tools = dict.fromkeys(
        name for s in statements if s.text.startswith(TOOLS_LABEL) for name in s.text.removeprefix(TOOLS_LABEL).split(", ")
    )
    listed = [s for s in statements if not s.text.startswith(TOOLS_LABEL)]
    listed += [Statement(len(listed) + 1, f"{TOOLS_LABEL}{', '.join(tools)}")] if tools else []
    summary = choose_statements(listed, _token_limit(pack), counter.count, joined=_narrative)
    return summary or "\n".join(head[0].strip() for line in text.splitlines() if (head := _DAY_LABEL.match(_ITEM_NUMBER.sub("", line))))


def choose_statements(
    statements: Sequence[Statement], limit: int, count: Callable[[str], int], *, joined: Callable[[Sequence[Statement]], str]
) -> str:
    """The statements by rank, the earlier before the later, as many as `limit` tokens hold, in their order and each once; no courtesies."""
    first_of = {" ".join(s.text.casefold().split()): place for place, s in reversed(list(enumerate(statements)))}
    places = [place for place in sorted(first_of.values()) if not _is_empty(statements[place].text)]
    chosen: set[int] = set()
    for place in sorted(places, key=lambda at: statements[at].rank):
        if count(joined([statements[at] for at in sorted(chosen | {place})])) <= limit:
            chosen.add(place)
    return joined([statements[at] for at in sorted(chosen)])


def _is_empty(text: str) -> bool:
    """Whether a statement is a courtesy, a bare mark of a list (`2.`), or the answer that nothing was found."""
    return is_courtesy(text) or is_no_result(text) or not any(sign.isalpha() for sign in text)


def _narrative(statements: Sequence[Statement]) -> str:
    """A line for the sentences of each entry, and one for each labelled statement."""
    lines: list[str] = []
    entry = -1
    for statement in statements:
        if statement.entry == entry and not statement.is_labelled:
            lines[-1] += f" {statement.text}"
        else:
            lines.append(statement.text)
        entry = -1 if statement.is_labelled else statement.entry
    return "\n".join(lines)


def build_digest(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """003 level 3: limits and decisions, tools, errors and open questions as the summaries say them.

    The progress is the first statement, what the user came for, and the newest one with a figure, a decision or an error.
    A question is open where its summary says nothing after it.
    """
    statements = list(dict.fromkeys(s for s in _statements(pack.document("summaries")) if not _is_empty(s.text)))
    sentences_only = [s for s in statements if not s.is_labelled and len(s.text.split()) <= _MAX_SENTENCE_WORDS]
    last_of_entry = {s.entry: s for s in sentences_only}
    open_questions = [s.text for s in sentences_only if s.rank == 5 and last_of_entry[s.entry] is s]
    tools = [name for s in statements if s.text.startswith(TOOLS_LABEL) for name in s.text.removeprefix(TOOLS_LABEL).split(", ")]
    errors = [
        s.text.removeprefix(ERROR_LABEL) for s in statements if s.text.startswith(ERROR_LABEL) or (s in sentences_only and s.rank == 2)
    ]
    digest: dict[str, Any] = {
        "key_decisions": [s.text for s in statements if s.text.startswith(LIMIT_LABEL) or (s in sentences_only and s.rank == 1)],
        "tools_used": [*tools, *(tool for s in sentences_only for tool in _TOOL_NAME.findall(s.text))],
        "errors_encountered": errors,
        "progress_toward_goal": _progress_lines([s for s in sentences_only if s.rank != 5]),
        "open_questions": open_questions,
    }
    limited = {name: list(dict.fromkeys(value))[-LIST_LIMITS[name] :] if name in LIST_LIMITS else value for name, value in digest.items()}

    def shown(digest: dict[str, Any]) -> str:
        return json.dumps(digest, ensure_ascii=False)

    return shown(trim_digest(limited, _token_limit(pack), counter.count, shown))


def _progress_lines(stated: Sequence[Statement]) -> str:
    """Two statements at most, a line each: behind one another, the label of the first (`Offer 0: `) would be read as that of both."""
    telling = (s.text for s in reversed(stated) if s.rank <= 2 or _DIGIT.search(s.text))
    return "\n".join(dict.fromkeys((stated[0].text, next(telling, stated[-1].text)))) if stated else ""


def _token_limit(pack: PromptPack) -> int:
    """The tokens that the call asks for where it does, never more than it may write."""
    return min(target_tokens(pack, "max_tokens", pack.max_output_tokens), pack.max_output_tokens)


def _statements(text: str) -> Iterator[Statement]:
    """Labelled lines and whole sentences of numbered items, in order, without the items' numbers, days and keywords."""
    entry = 0
    for line in text.splitlines():
        entry += bool(_ITEM_NUMBER.match(line))
        plain = _DAY_LABEL.sub("", _ITEM_NUMBER.sub("", line.strip()))
        found: Iterable[str] = (plain,) if plain.startswith(_LABELS) else sentences(plain)
        yield from (Statement(entry, said.strip()) for said in found if said.strip())
