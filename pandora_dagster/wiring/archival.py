"""What an archival works with, out of an open house. Builds its adapters; knows no order of steps."""

from dataclasses import replace

from pandora_dagster.phases.archiving import ArchiveDesk, ArchiveRules
from pandora_dagster.stores.archived import ArchivedFolders
from pandora_dagster.stores.cold import ColdFiles
from pandora_dagster.stores.holds import HoldFiles
from pandora_dagster.stores.index_rebuild import Preambles
from pandora_dagster.wiring.house import House


def open_archive(house: House, *, after_days: int | None = None, run_id: str = "") -> ArchiveDesk:
    """The desk of an archival; `after_days` in the place of the setting's, `run_id` of the Dagster run it belongs to."""
    settings = house.settings
    cold = ColdFiles(settings.root)
    rules = ArchiveRules(
        zone=settings.zone,
        after_days=settings.archive_after_days,
        ratio=settings.archive_ratio,
        document_tokens=settings.archive_document_tokens,
        concurrency=settings.archive_concurrency,
    )
    return ArchiveDesk(
        kit=house.kit,
        cold=cold,
        folders=ArchivedFolders(settings.root, cold, house.kit.counter),
        holds=HoldFiles(settings.root),
        rules=rules if after_days is None else replace(rules, after_days=after_days),
        preamble=Preambles(house.sessions).before,
        run_id=run_id,
    )
