"""The embedded runtime that keeps the packs it was sent, and short ways to fill a user's sources."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack
from pandora_dagster.contracts.user.sources import Provenance, Research, Visit
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.settings import load_settings
from tests.phases.light_rig import LightApp, open_light_app
from tests.phases.vocabulary import vocabulary
from tests.stores.user.test_source_files import RESEARCH, VISIT


class Recorder(ExtractiveRuntime):
    """The embedded runtime; `packs` holds what it was given."""

    def __init__(self) -> None:
        super().__init__(vocabulary(), lambda: datetime.now(UTC))
        self.packs: list[PromptPack] = []

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        self.packs.append(pack)
        return await super().complete(pack, timeout_s=timeout_s, on_words=on_words)


@dataclass
class Embedded:
    """An application, over the store `root` or in memory, its packs, and the user `anna`."""

    root: Path | None
    app: App | LightApp = field(init=False)
    runtime: Recorder = field(default_factory=Recorder)

    def __post_init__(self) -> None:
        if self.root is None:
            self.app = open_light_app(self.runtime)
        else:
            self.app = open_app(load_settings({"PANDORA_ROOT": str(self.root)}), runtime=self.runtime, counter=vocabulary())

    def remember(self, key: str, value: str, *, user: str = "anna", at: str = "2026-01-04T14:30:00Z", kind: str = "preference") -> None:
        self.app.dependencies.memory.put(user_id(user), MemoryEntry(key, value, 0.9, None, at, kind))

    def note(self, name: str, text: str, *, user: str = "anna") -> None:
        if isinstance(self.app, LightApp):
            self.app.notes.texts[user_id(user), name] = text
            return
        path = self.app.settings.root / "users" / user / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def research(self, *, hours: float = 1.0, life: float = 6.0, user: str = "anna", turn: int | None = None, **changed: object) -> None:
        born = datetime.now(UTC) - timedelta(hours=hours)
        times = {"created_at": born.isoformat(), "expires_at": (born + timedelta(hours=life)).isoformat()}
        found = Research.model_validate({**RESEARCH, "webpage_cache": [], **times, **changed})
        self.app.dependencies.sources.put(user_id(user), found.model_copy(update={"provenance": origin(turn)}))

    def visit(self, *, hours: float = 1.0, user: str = "anna", turn: int | None = None, **changed: object) -> None:
        seen = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
        found = Visit.model_validate({**VISIT, "visited_at": seen, **changed})
        self.app.dependencies.sources.put(user_id(user), found.model_copy(update={"provenance": origin(turn)}))

    def ask(self, query: str, *, user: str = "anna", session: str = "s1") -> TurnKey:
        key = self.app.start(query, user=user, session=session)
        self.app.run_turn(key, on_report=lambda _: None)
        return key

    def section(self, key: TurnKey, number: int) -> str:
        return ContextDocument.parse(self.app.turns.load(key).context).body(number)

    def gathered(self, key: TurnKey) -> dict:
        return json.loads(self.app.turns.load(key).files["gathered_context.json"])

    def plan(self, key: TurnKey) -> dict:
        return json.loads(self.app.turns.load(key).files["retrieval_plan.json"])


def origin(turn: int | None) -> Provenance:
    return Provenance(added_at="2026-01-04T14:30:00Z", by="a test", source_turn=turn)
