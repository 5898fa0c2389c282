"""Memory does not grow with the call log."""

import tracemalloc

from tests.governance.test_call_replay import filled_index


def test_a_log_of_a_million_calls_is_read_in_bounded_memory(tmp_path):
    """The newest two thousand of a million: page by page, each once, some megabytes at a time."""
    index = filled_index(tmp_path / "calls.duckdb", 1_000_000)
    tracemalloc.start()
    seen = {record.call_id for record in index.newest("gate", limit=2_000)}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(seen) == 2_000 and all(int(call.removeprefix("call_")) % 2 == 0 for call in seen)
    assert peak < 16 * 1024 * 1024
