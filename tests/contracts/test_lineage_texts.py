"""What the texts of document ids must be, asked of the adapter over stored turns and of the fake in memory."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.lineage import DocumentId
from pandora_dagster.contracts.ports.lineage_storage import DocumentTexts
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.lineage.document_texts import StoredDocumentTexts
from pandora_dagster.stores.turns.manifests import updated_manifest
from tests.archive.test_level_batches import COLD
from tests.fakes.lineage import MemoryDocumentTexts
from tests.fakes.turn_store import MemoryTurnStore
from tests.stores.turns.turn_rig import EFFECTS, ORDER, Ticking, Words, saved, with_phase

NOTE = "the attic has one window"
ANSWER, CONTEXT, SECTION = (DocumentId.parse(f"anna:turn_000001/{name}") for name in ("response.md", "context.md", "context.md#5"))


class Rig:
    """A turn that was run twice, and a note; the originals of a second turn were deleted by rule."""

    def __init__(self) -> None:
        self.turns = MemoryTurnStore(Words(), EFFECTS, Ticking())
        self.first: Turn = saved(self.turns)
        again = with_phase(self.turns, self.turns.reopen(self.first, phase="response", order=ORDER), "response", section=5, text="second")
        self.second: Turn = with_phase(self.turns, again, "saved_turn", state=TurnState.SAVED, files={"response.md": "second"})
        other: Turn = saved(self.turns)
        archived = updated_manifest(other.manifest, {"state": TurnState.ARCHIVED, "archive": COLD})
        self.turns.revisions[other.key] = [Turn(other.key, archived, other.context, other.files)]

    def written(self, turn: Turn) -> str:
        return EFFECTS.written_at(turn.manifest)


@pytest.fixture(scope="module")
def rig() -> Rig:
    return Rig()


def _in_memory(rig: Rig, root: Path) -> DocumentTexts:
    texts = MemoryDocumentTexts(deleted={str(TurnKey(ANSWER.user, 2))})
    for turn in (rig.first, rig.second):
        texts.put(str(CONTEXT), rig.written(turn), turn.context)
        texts.put(str(ANSWER), rig.written(turn), turn.files["response.md"])
    texts.put("anna:notes/attic", "2026-01-01T00:00:00Z", NOTE)
    return texts


def _stored(rig: Rig, root: Path) -> DocumentTexts:
    return StoredDocumentTexts(root, rig.turns, {"notes": lambda user, path: (NOTE,)}, EFFECTS)


@pytest.fixture(params=[_in_memory, _stored])
def texts(request: pytest.FixtureRequest, rig: Rig, tmp_path: Path) -> DocumentTexts:
    make: Callable[[Rig, Path], DocumentTexts] = request.param
    return make(rig, tmp_path)


def test_a_text_comes_before_its_earlier_states(texts: DocumentTexts, rig: Rig) -> None:
    """Of a section its own lines; a source has the one text that is stored."""
    assert list(texts.candidates(ANSWER)) == ["second", "revised"]
    assert list(texts.candidates(CONTEXT)) == [rig.second.context, rig.first.context]
    sections = [ContextDocument.parse(turn.context).section(5) for turn in (rig.second, rig.first)]
    assert list(texts.candidates(SECTION)) == [section.text for section in sections if section]
    assert list(texts.candidates(DocumentId.parse("anna:notes/attic"))) == [NOTE]


def test_a_citation_leads_to_the_text_of_its_time(texts: DocumentTexts, rig: Rig) -> None:
    """The oldest where it is earlier than all; one of the same second came before."""
    after = "2027-01-01T00:00:00Z"
    assert texts.text_at(ANSWER, at=after) == "second" and texts.text_at(ANSWER, at=rig.written(rig.second)) == "revised"
    assert texts.text_at(ANSWER, at=rig.written(rig.first)) == texts.text_at(ANSWER, at="2026-01-01T00:00:00Z") == "revised"
    assert texts.text_at(DocumentId.parse("anna:turn_000077/response.md"), at=after) is None
    assert texts.text_at(DocumentId.parse("anna:notes/attic"), at=after) is None


@pytest.mark.parametrize("gone", ["anna:turn_000077/context.md", "anna:turn_000001/plan.md", "anna:digest"])
def test_a_document_that_is_gone_is_missing_and_not_deleted(texts: DocumentTexts, gone: str) -> None:
    with pytest.raises(DocumentError) as caught:
        next(iter(texts.candidates(DocumentId.parse(gone))))
    assert caught.value.missing and not texts.is_deleted(DocumentId.parse(gone))


def test_originals_that_a_rule_deleted_are_no_fault(texts: DocumentTexts) -> None:
    """Nobody can read them any more; those of other turns are not deleted."""
    deleted = DocumentId.parse("anna:turn_000002/cold/response.md")
    assert texts.is_deleted(deleted) and texts.text_at(deleted, at="2027-01-01T00:00:00Z") is None
    assert not texts.is_deleted(ANSWER) and not texts.is_deleted(DocumentId.parse("anna:notes/attic"))
