"""An adapter in memory that holds texts of users."""

from collections.abc import Iterator, Mapping, Sequence

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports.user_storage import TraceScrubber
from pandora_dagster.contracts.retention import SearchedObject


class FakeEraser:
    """The Eraser port over lists of texts."""

    step = "fake"

    def __init__(self, texts: Mapping[UserId, Sequence[str]]) -> None:
        self.texts = {user: list(own) for user, own in texts.items()}

    def count(self, user: UserId) -> Mapping[str, int]:
        return {"texts": len(self.texts.get(user, ()))}

    def erase(self, user: UserId, traces: TraceScrubber) -> Sequence[str]:
        self.texts.pop(user, None)
        self.texts = {other: [traces.scrub(text) for text in own] for other, own in self.texts.items()}
        return ()

    def search(self, traces: TraceScrubber) -> Iterator[SearchedObject]:
        for user, own in self.texts.items():
            for text in own:
                yield SearchedObject(len(text), f"memory:/{user}" if traces.found_in(text.encode()) else "")
