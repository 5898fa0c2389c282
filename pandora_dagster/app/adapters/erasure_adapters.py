"""The erasure over one store. Part of the composition root: constructs, decides nothing."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pandora_dagster.app.erasure_service import ErasureService
from pandora_dagster.contracts.ports.user_storage import Eraser, RecordFolder
from pandora_dagster.settings import Settings
from pandora_dagster.shipped import shipped_folder
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.erasure.file_erasure import DocumentEraser
from pandora_dagster.stores.erasure.record_erasure import RecordEraser
from pandora_dagster.stores.erasure.record_folder import SqliteRecordFolder
from pandora_dagster.stores.erasure.row_erasure import IndexEraser
from pandora_dagster.stores.erasure.user_data import UserDataFiles


def open_erasure(
    settings: Settings, runs: Eraser, *, on_step: Callable[[str], None] = lambda step: None, wait_s: float = 60.0
) -> ErasureService:
    """The erasure over a store. `runs` erases Dagster's records; `wait_s`: seconds to wait for each turn, index and record that another
    process holds."""
    root, layout = settings.root, Layout(settings.root)
    intents = ErasureIntents(root, wait_s=min(wait_s, 10.0))
    records = RecordEraser(root, settings.user, (settings.dagster_home,), wait_s)
    shipped = shipped_folder()
    data = UserDataFiles(
        layout=layout,
        trash=intents.trash_folder,
        notes=(settings.user, settings.notes) if settings.notes else None,
        names=(root, settings.dagster_home),
        program=(shipped / "recipes", shipped / "prompts", Path(__file__).parents[2]),
        queries_of_others=records.queries_of_others,
        wait_s=wait_s,
    )
    erasers = (IndexEraser(root, wait_s), records, runs, DocumentEraser(layout, intents, wait_s))
    return ErasureService(intents, data, erasers, partial(datetime.now, UTC), on_step)


def open_record_folder(folder: Path) -> RecordFolder:
    """A folder of records that another program writes, as Dagster's."""
    return SqliteRecordFolder(folder)
