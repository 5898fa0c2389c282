"""What Dagster shows of an import."""

from datetime import date

import dagster as dg

from pandora_dagster.contracts.archive_records import DueTurn
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.defs.imported_turns import ASSET, record_import
from pandora_dagster.defs.instance import add_turn_partitions
from pandora_dagster.transfer.conversation_import import ImportReport

KEYS = (TurnKey.parse("ann:turn_000001"), TurnKey.parse("bob:turn_000001"))


def test_an_import_is_one_event_with_what_archival_takes_next(instance):
    """However many turns it stored; partitions of earlier versions for them go, those of live turns stay."""
    add_turn_partitions(instance, [*KEYS, TurnKey.parse("ann:turn_000002")])
    report = ImportReport(3, 2, 2, 0, ("f:3: not JSON",), KEYS)
    record_import(instance, report, source="talks.jsonl", due=(DueTurn(KEYS[0], date(2024, 1, 4)), DueTurn(KEYS[1], date(2024, 2, 1))))
    (event,) = instance.fetch_materializations(dg.AssetKey(ASSET), limit=10).records
    shown = {name: value.value for name, value in event.asset_materialization.metadata.items()}
    assert (shown["source"], shown["turns"], shown["users"], shown["lines_rejected"]) == ("talks.jsonl", 2, 2, 1)
    assert (shown["turns_due_for_archival"], shown["due_days"]) == (2, "2 days from 2024-01-04 to 2024-02-01")
    assert instance.get_dynamic_partitions("turns") == ["ann:turn_000002"]
    assert instance.get_dynamic_partitions("archival_days") == ["2024-01-04", "2024-02-01"]


def test_an_import_that_changed_nothing_is_no_event(instance):
    record_import(instance, ImportReport(lines=1, unchanged=1, keys=KEYS), source="talks.jsonl", due=())
    assert not instance.fetch_materializations(dg.AssetKey(ASSET), limit=10).records
