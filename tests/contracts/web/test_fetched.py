"""What is remembered of a host survives its own JSON, and nothing else is taken for it."""

import pytest
from pydantic import ValidationError

from pandora_dagster.contracts.web.fetched import HostRecord, RobotsAnswer


def test_a_record_is_read_as_it_was_written() -> None:
    record = HostRecord(released_at=1.5, not_before=2.0, robots=RobotsAnswer(text="User-agent: *\r\n", unavailable="", until=9.0))
    assert HostRecord.model_validate_json(record.model_dump_json()) == record


@pytest.mark.parametrize("fields", [{"released_at": -1}, {"not_before": float("inf")}, {"robots": {"text": ""}}, {"host": "a.test"}])
def test_what_is_no_record_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        HostRecord.model_validate(fields)
