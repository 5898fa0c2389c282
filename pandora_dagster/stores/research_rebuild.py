"""The research index made again from the records, and compared with them. The records are the truth."""

from collections.abc import Callable
from pathlib import Path

from pandora_dagster.contracts.sources import ResearchRow, VisitRow
from pandora_dagster.stores.duck import DuckDBFile
from pandora_dagster.stores.research_index import DuckResearchIndex
from pandora_dagster.stores.sources import Row, SourceFiles


def rebuild_sources(files: SourceFiles, index: DuckResearchIndex, *, report: Callable[[str], None]) -> tuple[int, Path | None]:
    """Make the index again beside the old one, then put it in its place: the records in it, and where a damaged one is kept.

    A record that can not be read is told to `report`. Raises StoreError.
    """
    file = index.file
    fresh = DuckResearchIndex(DuckDBFile(file.path.with_name(file.path.name + ".rebuilt"), file.schema, file.wait_s))
    with fresh.file.locked():
        fresh.file.discard()
    faults: list[str] = []
    rows = list(files.stored_rows(faults))
    if not rows and not file.path.exists():
        _report_faults(faults, report)
        return 0, None
    fresh.put(rows)
    aside = file.replace_with(fresh.file)
    known = {_key(row) for row in rows}
    index.put([row for row in files.stored_rows([]) if _key(row) not in known])  # what was stored meanwhile
    _report_faults(faults, report)
    return len(rows), aside


def verify_sources(files: SourceFiles, index: DuckResearchIndex) -> tuple[str, ...]:
    """Every difference between records and index, each as one sentence; empty where they agree. Raises StoreError."""
    faults: list[str] = []
    there = {_key(row): row for row in (*index.rows(ResearchRow), *index.rows(VisitRow))}
    for row in files.stored_rows(faults):
        found = there.pop(_key(row), None)
        if found is None:
            faults.append(f"{_row_name(row)}: missing from the index, expected a row")
        elif found != row:
            faults.append(f"{_row_name(row)}: changed since it was indexed: expected the row to say what the file says")
    return (*faults, *(f"{_row_name(row)}: in the index, but no readable record: expected no row" for row in there.values()))


def _report_faults(faults: list[str], report: Callable[[str], None]) -> None:
    for fault in faults:
        report(fault)


def _key(row: Row) -> tuple[type, str, str]:
    return type(row), row.user_id, row.file


def _row_name(row: Row) -> str:
    return f"{row.user_id}: {f'research {row.topic}' if isinstance(row, ResearchRow) else row.visit_id}"
