"""Whose a single value is: made and judged by the flat record it stands in."""

import json

import pytest

from pandora_dagster.compression import Outcome, build_ledger, verify
from pandora_dagster.compression.compressor import compress
from pandora_dagster.compression.condense.transcript import condense_transcript
from pandora_dagster.compression.read.value_owners import flats
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.documents.token_counter import TokenCounter

_HALLS = {
    "hall": "H-1",
    "state": "open",
    "rooms": [
        {"room": "R-11", "state": "locked", "booked_on": "2026-05-02", "door": {"kind": "glass", "alarm": True}},
        {"room": "R-12", "state": "flooded", "booked_on": "2026-05-03", "desks": [{"desk": "D-7", "lamp": "broken"}]},
    ],
    "warden": {"staff_no": "W-40", "shift": "night"},
}
_SOURCE = json.dumps(_HALLS, indent=1)


@pytest.mark.parametrize(
    "said",
    [
        "H-1: state open; R-11: state locked, booked_on 2026-05-02",
        "room R-11 R-12; staff_no W-40; W-40: shift night",
        "booked_on 2026-05-03: room R-12; D-7: lamp broken",
        "door.kind glass; kind glass; glass: alarm true",
    ],
)
def test_what_stands_in_its_record_is_true(said: str) -> None:
    """Under its record, its date with its name, its own key, or the object's name before that."""
    assert not verify(build_ledger(_SOURCE), _SOURCE, f"also seen: {said}").of(Outcome.INVENTED, Outcome.MUTATED)


@pytest.mark.parametrize(
    "said",
    [
        "H-1: state locked",
        "R-11: state locked flooded",
        "H-1: lamp broken",
        "R-12: lamp broken",
        "R-11: kind glass",
        "H-1: alarm true",
        "room 2026-05-02 R-11",
        "room W-40",
        "staff_no D-7",
        "booked_on 2026-05-02: room R-12",
        "H-1: shift night",
    ],
)
def test_what_stands_in_another_record_or_under_another_name_is_untrue(said: str) -> None:
    """The record around a record is not its own, and a date is no room."""
    assert verify(build_ledger(_SOURCE), _SOURCE, f"also seen: {said}").of(Outcome.INVENTED)


def test_each_plain_value_stands_in_one_record() -> None:
    """The nearest object, called by its own plain members alone."""
    found = {(flat.owner, path[-1]): value for flat in flats(_HALLS) for path, value in flat.members}
    assert found["R-12", "state"] == "flooded"
    assert found["D-7", "lamp"] == "broken"
    assert ("R-12", "lamp") not in found


def test_an_object_without_a_name_of_its_own_is_called_by_none_inside_it() -> None:
    """Not by an identifier of another object."""
    found = next(flats({"items": [{"id": "IT-1"}], "total": "14", "paid": True}))
    assert found.owner == ""


@pytest.mark.parametrize("target", [30, 40, 50, 60, 80])
def test_lists_of_single_values_are_true(target: int, counter: TokenCounter) -> None:
    """Of a nested record, at any target, and of the compression of a compression."""
    first = condense_transcript(_SOURCE, target, counter)
    for text in (first, condense_transcript(f"user: R-12?\n{first}", target - 5, counter)):
        found = verify(build_ledger(_SOURCE), _SOURCE, text).of(Outcome.INVENTED, Outcome.MUTATED)
        assert not [v for v in found if "another record" in v.reason], text


def test_members_that_only_some_objects_have_carry_their_names(counter: TokenCounter) -> None:
    """Nobody knows what a bare `false` is."""
    rooms = [*_HALLS["rooms"], {"room": "R-13", "state": "open", "booked_on": None, "claim": {"nr": "CL-7", "approved": False}}]
    text = json.dumps({"hall": "H-1", "rooms": rooms, "notes": ["The hall is swept twice a day by the staff."] * 20})
    made = compress(CompressionRequest(text, target=180), counter).text or ""
    assert "rooms[room,state,booked_on" in made
    assert "approved false" in made
    assert "alarm true" in made
