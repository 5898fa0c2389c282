"""What runs of tools cost: time, pages, model calls, for reports and metrics. Section 4 has none of it: it is evidence for answers."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pandora_dagster.contracts.model_calls import TurnUsage
from pandora_dagster.contracts.ports.measurement import Metrics
from pandora_dagster.contracts.ports.tool import ToolCost, ToolOutcome
from pandora_dagster.phases.core.phase_context import PhaseContext


class ToolMeter:
    """Measures one run of a tool from its creation on."""

    def __init__(self, ctx: PhaseContext) -> None:
        self._ctx = ctx
        self._begun: datetime = ctx.deps.clock()
        self._before = self._usage()

    def cost(self, outcome: ToolOutcome) -> ToolCost:
        """The cost of the run that had this outcome."""
        seconds, after, before = (self._ctx.deps.clock() - self._begun).total_seconds(), self._usage(), self._before
        calls, tokens, price = after.calls - before.calls, after.tokens - before.tokens, after.cost - before.cost
        return ToolCost(round(max(0.0, seconds), 3), outcome.pages, outcome.page_bytes, calls, tokens, price)

    def _usage(self) -> TurnUsage:
        return self._ctx.deps.calls.usage(self._ctx.turn.key, self._ctx.turn.manifest.revision, phase=self._ctx.phase)


def cost_row(tool: str, cost: ToolCost) -> Mapping[str, Any]:
    """A row of the table `tool_costs` of a report; pages, calls and price where there are any."""
    optional = {"pages": cost.pages, "page_bytes": cost.page_bytes, "calls": cost.calls, "tokens": cost.tokens, "price": cost.price}
    return {"tool": tool, "seconds": cost.seconds, **{name: value for name, value in optional.items() if value}}


def count_cost(metrics: Metrics, tool: str, cost: ToolCost, *, is_ok: bool) -> None:
    """Add one run to the metrics."""
    outcome = "ok" if is_ok else "failed"
    metrics.count("pandora_tool_seconds_sum", cost.seconds, tool=tool, outcome=outcome)
    metrics.count("pandora_tool_seconds_count", tool=tool, outcome=outcome)
    metrics.count("pandora_tool_pages_total", cost.pages, tool=tool)
    metrics.count("pandora_tool_page_bytes_total", cost.page_bytes, tool=tool)
    metrics.count("pandora_tool_calls_total", cost.calls, tool=tool)
    metrics.count("pandora_tool_tokens_total", cost.tokens, tool=tool)
