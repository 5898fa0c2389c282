"""Import and export of conversations."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports.turn_storage import TurnStore
from pandora_dagster.errors import DocumentError
from pandora_dagster.settings import Settings
from pandora_dagster.shipped import shipped_folder
from pandora_dagster.transfer.conversation_export import export_conversations, raise_fault
from pandora_dagster.transfer.conversation_import import ImportContext, ImportReport, import_conversations


@dataclass(frozen=True, slots=True)
class TransferService:
    """Conversations into and out of one store."""

    settings: Settings
    turns: TurnStore
    ctx: ImportContext

    def import_conversations(
        self, lines: Iterable[bytes], *, where: str, progress: Callable[[ImportReport], None] = lambda report: None
    ) -> ImportReport:
        """Import conversations, one per line; the report names the faults. Raises StoreError."""
        return import_conversations(lines, self.ctx, where=where, progress=progress)

    def import_example(self) -> ImportReport:
        """Import the shipped example history."""
        path = shipped_folder() / "data" / "example" / "conversations.jsonl"
        with path.open("rb") as lines:
            return self.import_conversations(lines, where=path.name)

    def export_conversations(
        self, user: UserId | None, *, on_fault: Callable[[DocumentError], None] = raise_fault
    ) -> Iterator[dict[str, Any]]:
        """The conversations of a user, or of all; imported ones exactly as they came. `on_fault` receives the error of each unreadable
        one."""
        return export_conversations(self.turns, self.ctx.sessions, user, on_fault=on_fault)
