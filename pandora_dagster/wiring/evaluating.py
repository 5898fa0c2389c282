"""Prompts scored from the call records of an open house. Knows where the records, outcomes and versions come from; judges nothing."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from pydantic import ValidationError

from pandora_dagster.contracts.calls import CallRecord
from pandora_dagster.contracts.corrections import Correction
from pandora_dagster.contracts.governance import Change
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.recipe_tests import CallCase
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.governance.failures import Group, failures_of, grouped
from pandora_dagster.governance.figures import Figures, figures
from pandora_dagster.governance.lessons import as_test
from pandora_dagster.governance.outcomes import Outcomes
from pandora_dagster.governance.regressions import WINDOW, Comparison, compared
from pandora_dagster.stores.corrections import CorrectionFiles
from pandora_dagster.stores.recipe_tests import RecipeTestFiles
from pandora_dagster.wiring.building import now
from pandora_dagster.wiring.house import House


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The scores of one house. Made anew for each look: outcomes of turns change."""

    house: House
    outcomes: Outcomes

    def versions(self, day: str) -> Mapping[tuple[str, str, str], Figures]:
        """Recipe name, version and layer -> figures of the day's calls (a day of PANDORA_TIMEZONE); raises StoreError."""
        return figures(self.day(day), lambda record: (record.recipe, record.recipe_version, record.stood_on.value), self.outcomes.of)

    def layers(self, day: str) -> Mapping[str, Figures]:
        """Layer that answered -> figures of the day's calls; raises StoreError."""
        return figures(self.day(day), lambda record: record.model_layer.value, self.outcomes.of)

    def window(self, recipe: str, version: str, layer: str = "") -> Figures:
        """Figures of the newest calls of a version (on one layer of its own or assigned to it); `recipe` by its own name."""
        records = self.house.calls.newest(recipe, version=version, layer=layer, limit=WINDOW)
        return figures(records, lambda record: "", self.outcomes.of).get("", Figures())

    def sides(self, path: str) -> dict[str, Figures]:
        """What stands in production of `{category}/{name}` and what stood there before, by name -> figures of its newest calls."""
        name = self.house.cookbook.load(path).name
        judged = self.house.versions.production(path).judged
        return {one.stands: self.window(name, one.version, self._layer(path, one)) for one in judged}

    def _layer(self, path: str, change: Change) -> str:
        """The layer whose calls count; "" for any, where it is the version's own and that is damaged, which `pandora doctor` names."""
        try:
            return (change.layer or self.house.versions.version(path, change.version).layer).value
        except (DocumentError, InputError):
            return ""

    def comparison(self, path: str) -> Comparison:
        """The version and layer of `{category}/{name}` in production beside what was there before."""
        (present, after), (before, than) = (*self.sides(path).items(), *(("", Figures()),) * 2)[:2]
        return compared(path, present, after, before, than)

    def comparisons(self) -> tuple[Comparison, ...]:
        """Of every recipe that ever ran."""
        return tuple(self.comparison(path) for path in self.house.cookbook.names() if self.house.versions.production(path).version)

    def failures(self, day: str) -> tuple[Group, ...]:
        """What went wrong on a day, by recipe, version and cause; raises StoreError, DocumentError."""
        begin, end = bounds(day, self.house)
        opened = [one for one in self.house.interventions.list() if begin <= _precise(one.created_at) < end]
        corrected = [one for one in self._corrections() if begin <= _precise(one.at) < end]
        return grouped(failures_of(self.day(day), opened, corrected, self.outcomes.of))

    def lessons(self, recipe: str, *, last: int) -> tuple[Group, ...]:
        """What went wrong with a recipe (by its own name): its newest calls, all its interventions and corrections."""
        opened = [one for one in self.house.interventions.list() if one.recipe == recipe]
        corrected = [one for one in self._corrections() if one.recipe == recipe]
        return grouped(failures_of(self.house.calls.newest(recipe, limit=last), opened, corrected, self.outcomes.of))

    def _corrections(self) -> Iterator[Correction]:
        files = open_corrections(self.house)
        for user in self.house.turns.users():
            yield from files.of_user(user)

    def day(self, day: str) -> Iterator[CallRecord]:
        """The day's calls, oldest first, page by page."""
        begin, end = bounds(day, self.house)
        return self.house.calls.between(begin, end)


def bounds(day: str, house: House) -> tuple[str, str]:
    """A day of PANDORA_TIMEZONE as records tell times: the first moment of it, and the first after it."""
    first = datetime.combine(date.fromisoformat(day), time(), tzinfo=house.settings.zone)
    after = datetime.combine(date.fromisoformat(day) + timedelta(days=1), time(), tzinfo=house.settings.zone)
    begin, end = (moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z") for moment in (first, after))
    return begin, end


def _precise(moment: str) -> str:
    """A time in whole seconds as records tell theirs, so that the two compare as texts."""
    return moment.replace("Z", ".000Z") if "." not in moment else moment


def open_corrections(house: House) -> CorrectionFiles:
    """What people corrected."""
    return CorrectionFiles(house.settings.root, now, secrets.token_hex)


def open_evaluation(house: House) -> Evaluation:
    """Over an open house; reads when it is asked."""
    return Evaluation(house, Outcomes(house.turns.manifest, open_corrections(house)))


def tests_made(
    house: House, recipe: str, calls: Sequence[str], *, facts: Sequence[str], lacks: Sequence[str], last: int
) -> tuple[str, ...]:
    """Kept calls of `{category}/{name}` as tests in their person's folder; where they lie. Raises InputError for a call that is not
    among the newest `last` of the recipe, or whose inputs are gone; then none is made."""
    wanted = dict.fromkeys(calls)
    found = {r.call_id: r for r in house.calls.newest(house.cookbook.load(recipe).name, limit=last) if r.call_id in wanted}
    made = [(_record(call, found, recipe), _case(house, _record(call, found, recipe))) for call in wanted]
    files = RecipeTestFiles(house.settings.root)
    tests = [(record, as_test(case, name=record.call_id, facts=facts, lacks=lacks)) for record, case in made]
    return tuple(str(files.add(user_id(record.user_id), recipe, test)) for record, test in tests)


def _record(call: str, found: Mapping[str, CallRecord], recipe: str) -> CallRecord:
    if call not in found:
        raise InputError(f"{call[:80]}: no call of {recipe} among the newest: expected one that pandora recipes lessons names")
    return found[call]


def _case(house: House, record: CallRecord) -> CallCase:
    try:
        return CallCase.model_validate_json(house.vault.read(record.request_ref))
    except (DocumentError, ValidationError) as error:
        raise InputError(f"{record.call_id}: what it was asked with is gone or damaged: expected a call whose inputs are kept") from error
