"""Roles that judge what code cannot tell: what the form of the words tells, and nothing of the rest."""

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.phase_outputs import (
    ChosenEntries,
    EntryExpiry,
    FilledArguments,
    RepeatedCall,
    ReplacedEntry,
    SearchWords,
)
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.recipe_governance import FailureLessons
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.evidence.header_lines import json_lines, json_object
from pandora_dagster.runtime.extractive.output_budget import Draft
from pandora_dagster.runtime.extractive.queries.content_words import terms
from pandora_dagster.runtime.extractive.queries.user_statements import contradicts, retracted_stems, shared_matter
from pandora_dagster.runtime.extractive.roles.tool_arguments import fill_arguments, read_tools


def find_conflict(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The one stored value that the new one contradicts most, by the rules for stated facts; none where two are as close."""
    stated = str(json_object(pack.document("new_entry")).get("value", ""))
    values = {int(line["number"]): str(line["value"]) for line in json_lines(pack.document("stored_entries"))}
    scores = {number: shared_matter(stated, value) for number, value in values.items() if contradicts(stated, value)}
    best = [number for number, score in scores.items() if score == max(scores.values())]
    return ReplacedEntry(reason=TEMPLATES["kind"], replaces=best[0] if len(best) == 1 else None)


def find_expiry(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """No end: this runtime does not judge meaning."""
    return EntryExpiry(until=None)


def recall_entries(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """None: this runtime compares words, and no stored entry has one of the query."""
    return ChosenEntries(entries=())


def choose_forgotten(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The entries that have every word of a thing that the user asks to forget."""
    retracted = retracted_stems(pack.query)
    stems = {
        int(line["number"]): frozenset(terms(f"{str(line['key']).replace('_', ' ')} {line['value']}"))
        for line in json_lines(pack.document("stored_entries"))
    }
    return ChosenEntries(entries=tuple(n for n, words in stems.items() if any(thing <= words for thing in retracted)))


def write_other_words(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """None: this runtime knows no other words."""
    return SearchWords(queries=())


def correct_arguments(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Arguments from the user's words where they fit the tool's schema, else those of the call."""
    tool = next(iter(read_tools(pack.document("tools")).values()), None)
    filled = fill_arguments(tool, pack.query, most=pack.max_output_tokens) if tool else {}
    is_better = tool is not None and tool.accepts(filled)
    return FilledArguments(reasoning=TEMPLATES["kind"], arguments=filled if is_better else json_object(pack.document("call")))


def judge_repetition(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """No repetition: code has found the equal calls, and this runtime does not judge meaning."""
    return RepeatedCall(reason=TEMPLATES["no_meaning"], repeats=False)


def propose_nothing(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """No lesson from failures: this runtime reads no prompt."""
    return FailureLessons(lessons=())
