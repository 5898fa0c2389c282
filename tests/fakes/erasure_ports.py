"""In-memory ports of an erasure: its intents, and the documents of users."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pandora_dagster.contracts.ids import UserId, user_id
from pandora_dagster.contracts.retention import ErasureIntent
from pandora_dagster.errors import StoreError


@dataclass
class MemoryErasureRecords:
    """`ErasureRecords` in memory."""

    intents: dict[UserId, ErasureIntent] = field(default_factory=dict[UserId, ErasureIntent])
    busy: bool = False

    @contextmanager
    def one_at_a_time(self) -> Generator[None]:
        if self.busy:
            raise StoreError("the erasure of a user: held by another process")
        self.busy = True
        try:
            yield
        finally:
            self.busy = False

    def has_intent(self, user: UserId) -> bool:
        return user in self.intents

    def facts(self, user: UserId) -> tuple[str, ...]:
        return self.intents[user].facts if user in self.intents else ()

    def write_intent(self, intent: ErasureIntent) -> None:
        self.intents[user_id(intent.user_id)] = intent

    def remove_intent(self, user: UserId) -> None:
        self.intents.pop(user, None)


@dataclass
class MemoryUserDocuments:
    """`UserDocuments` in memory: the documents of each user by name."""

    documents: dict[UserId, dict[str, str]] = field(default_factory=dict[UserId, dict[str, str]])

    def texts(self, user: UserId) -> Iterator[str]:
        yield from self.documents.get(user, {}).values()

    def of_others(self, user: UserId) -> Iterator[bytes]:
        yield from (text.encode() for other, texts in self.documents.items() if other != user for text in texts.values())

    def notices(self, user: UserId) -> Iterator[str]:
        yield from ()

    def retire_turns(self, user: UserId) -> None:
        """Turns are not written in memory: there is nothing to take away."""

    def await_levels(self, user: UserId) -> None:
        """No other process works in memory."""

    def remove_folder(self, user: UserId) -> None:
        self.documents.pop(user, None)
