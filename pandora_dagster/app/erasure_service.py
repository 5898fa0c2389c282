"""The erasure of one user and its proof: the order of the steps over the registered erasers.

The intent is written first and removed last. An erasure that was cut off, or whose proof found something, leaves it: no turn of the user
begins while it exists, and the next erasure repeats every step. It keeps the facts to search for until a proof has found nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pandora_dagster.compression.verification.facts import Fact, FactKind
from pandora_dagster.compression.verification.text_facts import TextFacts, find_facts
from pandora_dagster.contracts.ids import UserId, user_id
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.ports.user_storage import Eraser, ErasureRecords, UserDocuments
from pandora_dagster.contracts.retention import ErasureIntent, ErasureProof, ErasureReport, UserDataCounts
from pandora_dagster.documents.redaction.user_traces import MIN_TRACE_BYTES, UserTraces, occurring_facts
from pandora_dagster.language.timestamps import format_timestamp

_MAX_REPORTED_HITS = 200
_SEARCHED_KINDS = frozenset((FactKind.MONEY, FactKind.QUANTITY, FactKind.URL, FactKind.IDENTIFIER, FactKind.NAME, FactKind.NUMBER))
_MAX_FACT_BYTES = 80
_MIN_DIGITS = 8
"""A bare number of fewer digits occurs by chance, in times and sizes."""
MAX_FACTS = 5_000
"""Facts that are searched for; those that come first in their documents are preferred."""
OnStep = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ErasureService:
    """Erasures over one store and its Dagster records."""

    intents: ErasureRecords
    data: UserDocuments
    erasers: tuple[Eraser, ...]
    """In the order in which they erase: the documents last, since the other steps may need them again after an interruption."""
    clock: Clock
    on_step: OnStep

    def find(self, user: UserId) -> UserDataCounts:
        """Count the data of a user; nothing is changed. Raises StoreError, DocumentError."""
        user_id(user)
        *others, documents = self.erasers  # the documents are counted first and erased last
        counts = {kind: number for eraser in (documents, *others) for kind, number in eraser.count(user).items()}
        return UserDataCounts(user, {**counts, "begun_before": int(self.intents.has_intent(user))}, tuple(self.data.notices(user)))

    def erase(self, user: UserId) -> ErasureReport:
        """Erase everything of a user, then search the store for traces. Raises StoreError where something is locked or refused: a second
        call continues."""
        intents = self.intents
        with intents.one_at_a_time():
            counts = self.find(user)
            recorded_facts = intents.facts(user)
            intent = ErasureIntent(user_id=user, begun_at=format_timestamp(self.clock().replace(microsecond=0)), facts=recorded_facts)
            intents.write_intent(intent)
            self.on_step("turns")
            self.data.retire_turns(user)
            self.on_step("narratives")
            self.data.await_levels(user)
            self.on_step("facts")
            facts, traces = self._traces(user, recorded_facts)
            intents.write_intent(intent.model_copy(update={"facts": tuple(dict.fromkeys((*recorded_facts, *traces.facts)))}))
            notices = self._erase(user, traces)
            self.on_step("proof")
            proof = self._proof(traces, facts)
            self.data.remove_folder(user)  # with anything written meanwhile
            if proof.is_clean:
                intents.remove_intent(user)
        return ErasureReport(counts, proof, notices)

    def _erase(self, user: UserId, traces: UserTraces) -> tuple[str, ...]:
        notices: list[str] = []
        for eraser in self.erasers:
            self.on_step(eraser.step)
            notices += eraser.erase(user, traces)
        return tuple(notices)

    def _traces(self, user: UserId, recorded_facts: tuple[str, ...]) -> tuple[int, UserTraces]:
        """The number of facts in the user's documents and in the intent, and the traces: those facts that are neither in another user's
        documents nor in this program."""
        document_facts = find_distinctive_facts(self.data.texts(user))
        facts = tuple(dict.fromkeys((*recorded_facts, *document_facts)))[: 2 * MAX_FACTS]
        elsewhere = occurring_facts((*facts, user), self.data.of_others(user))
        users_facts = tuple(fact for fact in facts if fact not in elsewhere)[:MAX_FACTS]
        return len(facts), UserTraces(user, users_facts, is_id_distinctive=len(user) >= _MIN_ID_CHARACTERS and user not in elsewhere)

    def _proof(self, traces: UserTraces, facts: int) -> ErasureProof:
        """Every object that an eraser knows, searched: all files of the store and of Dagster's storage."""
        files = size = 0
        hits: list[str] = []
        for searched in (searched for eraser in self.erasers for searched in eraser.search(traces)):
            files, size = files + 1, size + searched.size
            hits += [searched.hit] if searched.hit else []
        return ErasureProof(files, size, len(traces.facts), facts, tuple(hits[:_MAX_REPORTED_HITS]))


_MIN_ID_CHARACTERS = 5
"""An id shorter than this occurs as a word in other texts; it counts only where it names the user."""


def find_distinctive_facts(texts: Iterable[str]) -> tuple[str, ...]:
    """Names, numbers with units, identifiers and addresses of the texts, each once, if too long to occur by chance."""
    positions: dict[str, int] = {}
    for text in texts:
        for position, fact in enumerate(_searchable_facts(find_facts(text))):
            if _is_distinctive(fact):
                positions[fact] = min(positions.get(fact, position), position)
    return tuple(sorted(positions, key=lambda fact: (positions[fact], fact)))


def _searchable_facts(text_facts: TextFacts) -> Iterator[str]:
    """The values of a text; adjacent names are one value, since each alone may be the name of another person."""
    facts = sorted((f for f in text_facts.facts if f.kind in _SEARCHED_KINDS), key=lambda f: f.start)
    for index, fact in enumerate(facts):
        previous = facts[index - 1] if index else fact
        start = previous.start if _is_one_name(text_facts, previous, fact) else fact.start
        if index + 1 == len(facts) or not _is_one_name(text_facts, fact, facts[index + 1]):
            yield text_facts.text[start : fact.end]


def _is_one_name(text_facts: TextFacts, first: Fact, second: Fact) -> bool:
    return first.kind is second.kind is FactKind.NAME and text_facts.text[first.end : second.start] == " "


def _is_distinctive(fact: str) -> bool:
    """Whether a search for the bytes of the fact is reliable: on one line, without quotes, not a number that occurs by chance."""
    if (
        any(character in fact for character in '\n\r"\\')
        or not MIN_TRACE_BYTES <= len(fact.encode(errors="surrogatepass")) <= _MAX_FACT_BYTES
    ):
        return False
    digits = sum(character.isdigit() for character in fact)
    return digits >= _MIN_DIGITS or any(character.isalpha() or character in "$€£¥%" for character in fact)
