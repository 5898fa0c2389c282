"""Interventions: written, found, resolved."""

import re
from datetime import UTC, datetime
from itertools import count

import pytest

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.ports.record_storage import Interventions
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.stores.records.intervention_files import InterventionFiles

NOW = datetime(2026, 11, 21, 15, 30, 12, tzinfo=UTC)


@pytest.fixture
def interventions(tmp_path) -> Interventions:
    numbers = count()
    return InterventionFiles(tmp_path, clock=lambda: NOW, random_hex=lambda n: f"{next(numbers) // 2:0{2 * n}x}")


def test_an_intervention_reads_back(interventions, tmp_path):
    """Its id carries the time and never meets another one's; the file bears its name; credentials are taken out."""
    first = interventions.open(InterventionType.TIMEOUT, "password=hunter22 timed out", user_id="anna", turn_id="turn_000001", hint="wait")
    second = interventions.open(InterventionType.TIMEOUT, "again")
    third = interventions.open(InterventionType.TIMEOUT, "again")
    assert re.fullmatch(r"int_20261121_153012_[0-9a-f]{4}", first.id) and len({first.id, second.id, third.id}) == 3
    assert interventions.show(first.id) == first and first.message == "password=[redacted] timed out"
    assert (tmp_path / "interventions" / f"{first.id}.json").is_file()


def test_interventions_are_filtered_and_resolved(interventions):
    """By state and user; what was noted can be acted on, and what was done stands."""
    one = interventions.open(InterventionType.FACT_LOSS, "m", user_id="anna")
    two = interventions.open(InterventionType.FACT_LOSS, "m", user_id="bob")
    done = interventions.resolve(one.id, "looked at it")
    assert (done.state, done.resolution, done.resolved_at) == ("resolved", "looked at it", "2026-11-21T15:30:12Z")
    assert interventions.list() == (done, two)
    assert interventions.list(state="open") == (two,) == interventions.list(user="bob")
    assert interventions.list(state="open", user="anna") == ()
    done = interventions.resolve(one.id, "and ended", how="abandoned")
    assert done.resolution == "looked at it; and ended"
    with pytest.raises(InputError, match=rf"{one.id}: resolved already \(abandoned, 2026-11-21T15:30:12Z\): expected an open one"):
        interventions.resolve(one.id, "better words", how="retry")
    assert interventions.show(one.id) == done


@pytest.mark.parametrize("bad", ["../turn", "int_1", "", "int_20261121_153012_ab12/x", "int_20261121_153012_ab12\n"])
def test_an_id_that_is_none_is_refused(interventions, bad):
    """InputError before any path is built."""
    with pytest.raises(InputError, match="expected an id like"):
        interventions.show(bad)


def test_unknown_and_damaged_ones_are_distinguished(interventions, tmp_path):
    """An unknown id is the user's error; a damaged file is named, also in the list."""
    with pytest.raises(InputError, match="there is no"):
        interventions.show("int_20261121_153012_ffff")
    known = interventions.open(InterventionType.TIMEOUT, "m")
    path = tmp_path / "interventions" / f"{known.id}.json"
    other = path.read_text().replace(known.id, "int_20261121_153012_eeee")
    for text, says in (("{}", "expected an intervention"), ("", "empty"), (other, "it holds intervention")):
        path.write_text(text)
        for ask in (lambda: interventions.show(known.id), interventions.list):
            with pytest.raises(DocumentError, match=rf"{known.id}\.json: .*{says}"):
                ask()
