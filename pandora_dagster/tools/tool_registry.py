"""The tools that the Coordinator may call: the only list of them, for turns that run them and for checks of recipes that name them."""

from pandora_dagster.contracts.ports.measurement import Clock, TextScorer, TokenMeasure
from pandora_dagster.contracts.ports.tool import Tool
from pandora_dagster.contracts.ports.turn_storage import TurnIndex, TurnStore
from pandora_dagster.contracts.ports.user_storage import MemoryStore
from pandora_dagster.tools.document_search import DOC_SEARCH, DocSearch
from pandora_dagster.tools.memory_tools import MEMORY_CREATE, MEMORY_QUERY, MemoryCreate, MemoryQuery

TOOL_NAMES = frozenset({DOC_SEARCH.name, MEMORY_QUERY.name, MEMORY_CREATE.name})
WRITING_TOOLS = frozenset(spec.name for spec in (DOC_SEARCH, MEMORY_QUERY, MEMORY_CREATE) if spec.writes)


def build_tools(
    turns: TurnStore,
    index: TurnIndex,
    memory: MemoryStore,
    counter: TokenMeasure,
    scores: TextScorer,
    clock: Clock,
) -> dict[str, Tool]:
    """Every tool by its name."""
    tools: tuple[Tool, ...] = (
        DocSearch(turns, index, counter, scores),
        MemoryQuery(memory, counter, scores),
        MemoryCreate(memory, clock),
    )
    return {tool.spec.name: tool for tool in tools}
