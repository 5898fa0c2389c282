"""Reads the document `tools`, and fills the arguments of a tool with words of the user, and of no other document."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema.exceptions import SchemaError, UnknownType
from jsonschema.validators import validator_for  # pyright: ignore[reportUnknownVariableType]

from pandora_dagster.language.sentences import sentences
from pandora_dagster.language.stop_words import ASKING_WORDS
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.evidence.header_lines import as_mapping, as_number, json_lines
from pandora_dagster.runtime.extractive.queries.content_words import STOP_WORDS, content_words
from pandora_dagster.runtime.extractive.queries.user_statements import OPENING, extract_facts, split_clauses

_MY_THING_IS = re.compile(r"^my ([^?.!,]{1,60}?) (?:is|are) (.+)$", re.IGNORECASE)
_PLAIN_WORD = re.compile(r"(?<![^\W_])[a-z][a-z0-9]*(?![^\W_])")
_CONDITION = re.compile(r"\b(?:if|when|unless|because|since|while|until|although|though|but|or|so|then|except)\b", re.IGNORECASE)
_FEELING_VERBS = frozenset(("prefer", "like", "love", "hate", "dislike"))
RESEARCH = "internet.research"
_MAX_KEY_WORDS = 4
_MAX_STATEMENTS = 4
"""More are kept as one: each takes a call of a tool, of which a turn makes few."""
_MAX_KEY_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One registered tool as the pack offers it."""

    name: str
    parameters: Mapping[str, Any]
    writes: bool

    def accepts(self, arguments: Mapping[str, Any]) -> bool:
        """Whether `arguments` hold against the tool's JSON Schema."""
        try:
            return validator_for(self.parameters)(self.parameters).is_valid(arguments)
        except (SchemaError, UnknownType):
            return False


@dataclass(frozen=True, slots=True)
class Statement:
    """What a user wants remembered: a key made of their words, and the value verbatim."""

    key: str
    value: str
    about: str
    """`preference` or `fact`."""


def read_tools(document: str) -> dict[str, OfferedTool]:
    """The registered tools by name, in the given order."""
    read = (line for line in json_lines(document) if isinstance(line.get("name"), str))
    return {str(t["name"]): OfferedTool(str(t["name"]), t.get("parameters") or {}, bool(t.get("writes"))) for t in read}


def read_statement(query: str) -> Statement:
    """`remember that my favourite hamster is Syrian` -> favourite_hamster: Syrian; other statements stay whole, so that a "not" is kept."""
    stated = OPENING.sub("", query.strip()).strip() or query.strip()
    my_thing = _MY_THING_IS.match(stated.splitlines()[0]) if stated else None
    if my_thing:
        return Statement(_make_key(my_thing.group(1)), my_thing.group(2).strip().rstrip(".!") or my_thing.group(2).strip(), "preference")
    plain = stated.rstrip(".! ") or stated
    preferring = re.search(r"\b(?:prefer|like|love|hate|dislike|favou?rite|always|never|want)\b", plain, re.IGNORECASE)
    return Statement(_make_key(plain), plain, "preference" if preferring else "fact")


def split_statements(query: str) -> tuple[str, ...]:
    """The parts of what a user states that are complete by themselves, verbatim: `my budget is $900 and I prefer aisle seats` are two.

    All of it is one where a part is no fact of the user, or hangs on a condition.
    """
    parts = tuple(part for sentence in sentences(query) for part in split_clauses(sentence))
    are_independent = len({read_statement(part).key for part in parts}) == len(parts) <= _MAX_STATEMENTS and not _CONDITION.search(query)
    return parts if are_independent and all(map(extract_facts, parts)) else (query.strip(),)


def _make_key(said: str) -> str:
    """A short name made of the user's words in plain letters and digits, e.g. `aisle_seats`."""
    found = _PLAIN_WORD.findall(said.lower())
    telling = [w for w in found if w not in STOP_WORDS and w not in ASKING_WORDS and w not in _FEELING_VERBS]
    return "_".join((telling or found)[:_MAX_KEY_WORDS])[:_MAX_KEY_CHARACTERS].strip("_") or TEMPLATES["unnamed"]


def fill_arguments(tool: OfferedTool, query: str, *, most: int) -> dict[str, Any]:
    """Arguments for `tool` from the user's words, as far as it has fields of these names: key, value and kind of a statement where it
    takes a value, else a search text of at most `most` characters."""
    properties = as_mapping(tool.parameters.get("properties"))
    if "value" in properties:
        statement = read_statement(query)
        filled = {"key": statement.key, "value": statement.value, "kind": statement.about}
    else:
        filled = {name: _shorten_query(query, min(most, _max_characters(properties, name) or most)) for name in ("query", "question")}
    return {name: value for name, value in filled.items() if name in properties}


def _max_characters(properties: Mapping[str, Any], name: str) -> int:
    return int(as_number(as_mapping(properties.get(name)).get("maxLength")) or 0)


def _shorten_query(query: str, most: int) -> str:
    """The query, or where a tool takes fewer characters as many of its content words as it takes."""
    if len(query) <= most:
        return query
    kept_words, left_characters = list[str](), most
    for word in content_words(query):
        left_characters -= len(word) + 1
        kept_words += [word] if left_characters >= -1 else []
    return " ".join(kept_words)
