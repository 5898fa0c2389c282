"""What every store of feedback on recipes must do: corrections and tests made from calls, asked of the files and of the fakes in memory."""

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.ports.record_storage import Corrections, RecipeTestStore
from pandora_dagster.contracts.recipe_governance import Correction
from pandora_dagster.contracts.recipe_schema import RecipeTest
from pandora_dagster.contracts.retention import ErasureIntent
from pandora_dagster.errors import DocumentError, InputError, StoreError, UnknownTurnError
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.records.recipe_feedback import CorrectionFiles, RecipeTestFiles
from tests.fakes.recipe_stores import MemoryCorrections, MemoryRecipeTests
from tests.stores.turns.turn_rig import Ticking

ANN, BEN = UserId("ann"), UserId("ben")
FIRST, OTHER = TurnKey(ANN, 1), TurnKey(BEN, 1)
RECIPE = "pipeline/phase1_reflection"
SECRET = "sk-proj-abcdefghijklmnop1234567890"


@pytest.fixture(params=["memory", "files"])
def is_fake(request: pytest.FixtureRequest, tmp_path: Path) -> bool:
    for key in (FIRST, OTHER):
        (tmp_path / "users" / key.user / "turns" / key.turn_id).mkdir(parents=True)
    return request.param == "memory"


@pytest.fixture
def corrections(is_fake: bool, tmp_path: Path) -> Corrections:
    clock = Ticking()
    return MemoryCorrections({FIRST, OTHER}, clock=clock) if is_fake else CorrectionFiles(tmp_path, clock, secrets.token_hex)


@pytest.fixture
def tests(is_fake: bool, tmp_path: Path) -> RecipeTestStore:
    return MemoryRecipeTests({ANN, BEN}) if is_fake else RecipeTestFiles(tmp_path)


@pytest.fixture
def begin_erasure(corrections: Corrections, tests: RecipeTestStore, tmp_path: Path) -> Callable[[UserId], None]:
    def begin(user: UserId) -> None:
        if isinstance(corrections, MemoryCorrections) and isinstance(tests, MemoryRecipeTests):
            corrections.erasing.add(user)
            tests.erasing.add(user)
        else:
            ErasureIntents(tmp_path).write_intent(ErasureIntent(user_id=user, begun_at="2026-01-04T14:30:00Z"))

    return begin


def corrected(corrections: Corrections, text: str, key: TurnKey = FIRST) -> Correction:
    return corrections.add(key, revision=2, phase="response", recipe=RECIPE, recipe_version="3fd9c2", text=text, call_id="c1")


def test_corrections_of_a_user_come_oldest_first(corrections: Corrections) -> None:
    """With the turn, the phase and the version that answered; nobody else's."""
    made = [corrected(corrections, text) for text in ("It cost 429.", "It is oak.", "It is late.")]
    corrected(corrections, "It is pine.", OTHER)
    assert corrections.of_user(ANN) == tuple(made) and corrections.of_user(UserId("cid")) == ()
    (first, *_) = made
    assert (first.user_id, first.turn_id, first.revision, first.phase) == (ANN, FIRST.turn_id, 2, "response")
    assert (first.recipe, first.recipe_version, first.call_id, first.said) == (RECIPE, "3fd9c2", "c1", "It cost 429.")
    assert len({one.id for one in made}) == 3 and [one.said for one in corrections.of_user(BEN)] == ["It is pine."]


def test_a_correction_is_stored_without_its_credentials(corrections: Corrections) -> None:
    made = corrected(corrections, f"use {SECRET} instead")
    assert corrections.of_user(ANN) == (made,) and SECRET not in made.said and "instead" in made.said


def test_a_turn_that_is_gone_takes_no_correction(corrections: Corrections) -> None:
    with pytest.raises(UnknownTurnError):
        corrected(corrections, "It cost 429.", TurnKey(ANN, 9))
    assert corrections.of_user(ANN) == ()


@pytest.mark.parametrize("text", ["", '{"id": "cor', "{}"])
def test_a_damaged_correction_is_named(corrections: Corrections, tmp_path: Path, text: str) -> None:
    """Others are not returned without it; other users are unaffected."""
    made, other = corrected(corrections, "It cost 429."), corrected(corrections, "It is pine.", OTHER)
    if isinstance(corrections, MemoryCorrections):
        corrections.texts[ANN, made.id] = text
    else:
        (tmp_path / "users" / "ann" / "corrections" / f"{made.id}.json").write_text(text)
    with pytest.raises(DocumentError, match=made.id):
        corrections.of_user(ANN)
    assert corrections.of_user(BEN) == (other,)


def wanted(name: str, fact: str = "429 euros") -> RecipeTest:
    return RecipeTest.model_validate({"name": name, "facts": (fact,)})


def test_tests_of_a_recipe_come_by_name(tests: RecipeTestStore) -> None:
    """The same test is stored once; those of other recipes and users are not returned."""
    late, early = wanted("the price of the desk"), wanted("the length of the desk", "120 cm")
    path = tests.add(ANN, RECIPE, late)
    assert tests.add(ANN, RECIPE, late) == path != tests.add(ANN, RECIPE, early)
    assert tests.add(BEN, RECIPE, late) != path and tests.add(ANN, "pipeline/phase2_synthesis", late) != path
    assert tests.of_user(ANN, RECIPE) == (early, late) and tests.of_user(BEN, RECIPE) == (late,)
    assert tests.of_user(BEN, "pipeline/phase2_synthesis") == () == tests.of_user(UserId("cid"), RECIPE)


def test_a_user_who_is_gone_gets_no_test(tests: RecipeTestStore) -> None:
    with pytest.raises(InputError):
        tests.add(UserId("cid"), RECIPE, wanted("the price"))
    assert tests.of_user(UserId("cid"), RECIPE) == ()


@pytest.mark.parametrize("text", ["", '{"name": "the', "{}"])
def test_a_damaged_test_is_named(tests: RecipeTestStore, text: str) -> None:
    path = tests.add(ANN, RECIPE, wanted("the price"))
    if isinstance(tests, MemoryRecipeTests):
        tests.texts[path] = text
    else:
        path.write_text(text)
    with pytest.raises(DocumentError, match=path.name):
        tests.of_user(ANN, RECIPE)


def test_nothing_is_written_while_its_user_is_erased(
    corrections: Corrections, tests: RecipeTestStore, begin_erasure: Callable[[UserId], None]
) -> None:
    """Other users may still give feedback."""
    begin_erasure(ANN)
    with pytest.raises(StoreError, match="erased"):
        corrected(corrections, "It cost 429.")
    with pytest.raises(StoreError, match="erased"):
        tests.add(ANN, RECIPE, wanted("the price"))
    assert corrections.of_user(ANN) == () and tests.of_user(ANN, RECIPE) == ()
    assert corrected(corrections, "It is pine.", OTHER) and tests.add(BEN, RECIPE, wanted("the price"))
