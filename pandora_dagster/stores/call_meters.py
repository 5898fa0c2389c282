"""A call's record as figures for the meters. Knows names and labels; a label never holds a person's words or id."""

from collections.abc import Callable

from pandora_dagster.contracts.calls import CallRecord
from pandora_dagster.contracts.ports import Metrics


def metrics_listener(meters: Metrics) -> Callable[[CallRecord], None]:
    """What counts every record that is written, failed calls included."""

    def count(record: CallRecord) -> None:
        layer = record.model_layer.value
        meters.count("pandora_calls_total", recipe=record.recipe, layer=layer, outcome="ok" if record.success else "failed")
        meters.count("pandora_call_seconds_sum", record.latency_ms / 1_000, layer=layer)
        meters.count("pandora_call_seconds_count", layer=layer)
        meters.count("pandora_call_queue_seconds_total", record.queue_ms / 1_000, layer=layer)
        meters.count("pandora_call_retries_total", record.retries, layer=layer)
        meters.count("pandora_call_cost_total", record.cost, layer=layer)
        for kind, tokens in record.spent.model_dump().items():
            meters.count("pandora_call_tokens_total", tokens, layer=layer, kind=kind)

    return count
