"""The tools that the Coordinator may call: the only list of them, for turns that run them and for checks of recipes that name them."""

from pandora_dagster.contracts.ports.measurement import Clock, TextScorer, TokenMeasure
from pandora_dagster.contracts.ports.tool import Tool
from pandora_dagster.contracts.ports.turn_storage import TurnIndex, TurnStore
from pandora_dagster.contracts.ports.user_storage import MemoryStore
from pandora_dagster.tools.document_search import DOC_SEARCH, DocSearch
from pandora_dagster.tools.internet_research import INTERNET_RESEARCH
from pandora_dagster.tools.memory_tools import MEMORY_CREATE, MEMORY_FORGET, MEMORY_QUERY, MemoryCreate, MemoryForget, MemoryQuery

SPECS = (DOC_SEARCH, MEMORY_QUERY, MEMORY_CREATE, MEMORY_FORGET, INTERNET_RESEARCH)
TOOL_NAMES = frozenset(spec.name for spec in SPECS)
WRITING_TOOLS = frozenset(spec.name for spec in SPECS if spec.writes)


def build_tools(
    turns: TurnStore,
    index: TurnIndex,
    memory: MemoryStore,
    counter: TokenMeasure,
    scores: TextScorer,
    clock: Clock,
    *further: Tool,
) -> dict[str, Tool]:
    """Every tool by its name; `further`: those that exist where the settings say so, such as `internet.research`."""
    tools: tuple[Tool, ...] = (
        DocSearch(turns, index, counter, scores),
        MemoryQuery(memory, counter, scores),
        MemoryCreate(memory, scores, clock),
        MemoryForget(memory),
        *further,
    )
    return {tool.spec.name: tool for tool in tools}
