"""The tools that the Coordinator may call: the only list of them. Recipes are checked against its names, turns run its tools."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports.measurement import Clock, TextScorer, TokenMeasure
from pandora_dagster.contracts.ports.tool import Tool
from pandora_dagster.contracts.ports.turn_storage import TurnIndex, TurnStore
from pandora_dagster.contracts.ports.user_storage import MemoryStore
from pandora_dagster.tools.document_search import DOC_SEARCH, DocSearch
from pandora_dagster.tools.memory_tools import MEMORY_CREATE, MEMORY_QUERY, MemoryCreate, MemoryQuery


@dataclass(frozen=True, slots=True)
class ToolPorts:
    """The ports that tools work with."""

    turns: TurnStore
    index: TurnIndex
    memory: MemoryStore
    counter: TokenMeasure
    scores: TextScorer
    clock: Clock
    crosses_sessions: Callable[[UserId], bool]
    """Whether the turns of a user's other sessions may be searched."""


def _doc_search(ports: ToolPorts) -> Tool:
    return DocSearch(ports.turns, ports.index, ports.counter, ports.scores, ports.crosses_sessions)


def _memory_query(ports: ToolPorts) -> Tool:
    return MemoryQuery(ports.memory, ports.counter, ports.scores)


def _memory_create(ports: ToolPorts) -> Tool:
    return MemoryCreate(ports.memory, ports.clock)


_TOOLS: Mapping[str, Callable[[ToolPorts], Tool]] = {
    DOC_SEARCH.name: _doc_search,
    MEMORY_QUERY.name: _memory_query,
    MEMORY_CREATE.name: _memory_create,
}
TOOL_NAMES = frozenset(_TOOLS)


def build_tools(ports: ToolPorts) -> dict[str, Tool]:
    """Every tool by its name."""
    return {name: build(ports) for name, build in _TOOLS.items()}
