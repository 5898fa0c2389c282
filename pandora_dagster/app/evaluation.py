"""Scores of prompts from the call records of one store. Supplies records, outcomes and versions; `governance` compares them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from pydantic import ValidationError

from pandora_dagster.app.application import App
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.recipe_governance import ConfidenceCalibration, Correction, ProductionChange, RecipeCalibration
from pandora_dagster.contracts.recipe_schema import CallCase, LoadedRecipe
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.governance.call_metrics import CallMetrics, measure_calls, reads_prompts
from pandora_dagster.governance.recipe_failures import FailureGroup, find_failures, group_failures, make_recipe_test
from pandora_dagster.governance.regressions import WINDOW_CALLS, VersionComparison, compare_versions
from pandora_dagster.governance.turn_outcomes import TurnOutcomes

_CALIBRATED_CALLS = 2_000
"""Calls of a recipe, newest first, from which its confidence is calibrated."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The scores of one store. Open a new one for each evaluation: outcomes of turns change."""

    app: App
    outcomes: TurnOutcomes

    def versions(self, day: str) -> Mapping[tuple[str, str, str], CallMetrics]:
        """Recipe name, version and layer -> figures of the day's calls (a day of PANDORA_TIMEZONE); raises StoreError."""
        return measure_calls(
            self.calls_of_day(day),
            lambda record: (record.recipe, record.recipe_version, record.grouping_layer.value),
            self.outcomes.outcome_of,
        )

    def layers(self, day: str) -> Mapping[str, CallMetrics]:
        """Layer that answered -> figures of the day's calls; raises StoreError."""
        return measure_calls(self.calls_of_day(day), lambda record: record.model_layer.value, self.outcomes.outcome_of)

    def window(self, recipe: str, version: str, layer: str = "") -> CallMetrics:
        """Figures of the newest calls of a version (on one layer of its own or assigned to it); `recipe` is the name in its file."""
        records = self.app.calls.newest(recipe, version=version, layer=layer, limit=WINDOW_CALLS)
        return measure_calls(records, lambda record: "", self.outcomes.outcome_of).get("", CallMetrics())

    def production_figures(self, path: str) -> dict[str, CallMetrics]:
        """The version of `{category}/{name}` in production and its predecessor, by label -> figures of their newest calls."""
        name = self.app.recipes.load(path).name
        changes = self.app.versions.production(path).current_and_previous
        return {change.label: self.window(name, change.version, self._layer(path, change)) for change in changes}

    def calibrate(self) -> tuple[RecipeCalibration, ...]:
        """Measure stated confidence against the outcomes of turns, for each recipe with a threshold, and store it; raises StoreError."""
        recipes = [self.app.recipes.load(path) for path in self.app.recipes.names()]
        measured = tuple(self._calibration(r) for r in recipes if r.recipe.quality_gates.confidence_threshold is not None)
        for calibration in measured:
            if calibration.tables:
                self.app.versions.keep_calibration(calibration)
        return measured

    def _calibration(self, loaded: LoadedRecipe) -> RecipeCalibration:
        """The newest calls of each version on each model. The embedded runtime states constants, which say nothing."""
        records = (r for r in self.app.calls.newest(loaded.name, limit=_CALIBRATED_CALLS) if reads_prompts(r.runtime))
        metrics = measure_calls(records, lambda record: (record.recipe_version, record.model), self.outcomes.outcome_of)
        tables = tuple(
            ConfidenceCalibration(version=version, model=model, bins=figures.confidence_bins)
            for (version, model), figures in sorted(metrics.items())
        )
        return RecipeCalibration(recipe=loaded.path, at=self.app.dependencies.clock().isoformat(timespec="seconds"), tables=tables)

    def _layer(self, path: str, change: ProductionChange) -> str:
        """The layer whose calls count; "" (any) where the version that names it is damaged, which `pandora doctor` reports."""
        try:
            return (change.layer or self.app.versions.version(path, change.version).layer).value
        except (DocumentError, InputError):
            return ""

    def comparison(self, path: str) -> VersionComparison:
        """The version and layer of `{category}/{name}` in production, compared with its predecessor."""
        no_version = ("", CallMetrics())
        current, previous = (*self.production_figures(path).items(), no_version, no_version)[:2]
        return compare_versions(path, *current, *previous)

    def comparisons(self) -> tuple[VersionComparison, ...]:
        """The comparisons of every recipe that ever ran."""
        return tuple(self.comparison(path) for path in self.app.recipes.names() if self.app.versions.production(path).version)

    def failures(self, day: str) -> tuple[FailureGroup, ...]:
        """The failures of a day, by recipe, version and cause; raises StoreError, DocumentError."""
        begin, end = day_bounds(day, self.app)
        interventions = [i for i in self.app.interventions.list() if begin <= _with_milliseconds(i.created_at) < end]
        corrections = [c for c in self._corrections() if begin <= _with_milliseconds(c.at) < end]
        return group_failures(find_failures(self.calls_of_day(day), interventions, corrections, self.outcomes.outcome_of))

    def lessons(self, recipe: str, *, last: int) -> tuple[FailureGroup, ...]:
        """The failures of a recipe (given by the name in its file): of its newest calls, all its interventions and corrections."""
        interventions = [i for i in self.app.interventions.list() if i.recipe == recipe]
        corrections = [c for c in self._corrections() if c.recipe == recipe]
        return group_failures(
            find_failures(self.app.calls.newest(recipe, limit=last), interventions, corrections, self.outcomes.outcome_of)
        )

    def _corrections(self) -> Iterator[Correction]:
        for user in self.app.turns.users():
            yield from self.app.records.corrections.of_user(user)

    def calls_of_day(self, day: str) -> Iterator[CallRecord]:
        """The day's calls, oldest first, page by page."""
        begin, end = day_bounds(day, self.app)
        return self.app.calls.between(begin, end)


def day_bounds(day: str, app: App) -> tuple[str, str]:
    """The first moment of a day of PANDORA_TIMEZONE and the first after it, in the format of records."""
    first = datetime.combine(date.fromisoformat(day), time(), tzinfo=app.settings.zone)
    after = datetime.combine(date.fromisoformat(day) + timedelta(days=1), time(), tzinfo=app.settings.zone)
    begin, end = (moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z") for moment in (first, after))
    return begin, end


def _with_milliseconds(moment: str) -> str:
    """A time with milliseconds, as in call records, so that both compare as texts."""
    return moment.replace("Z", ".000Z") if "." not in moment else moment


def open_evaluation(app: App) -> Evaluation:
    """The evaluation of an application; reads on demand."""
    return Evaluation(app, TurnOutcomes(app.turns.manifest, app.records.corrections))


def make_tests(app: App, recipe: str, calls: Sequence[str], *, facts: Sequence[str], lacks: Sequence[str], last: int) -> tuple[str, ...]:
    """Store recorded calls of `{category}/{name}` as tests in their user's folder; returns the paths. Raises InputError, before any is
    stored, for a call that is not among the newest `last` of the recipe, or whose inputs are gone."""
    call_ids = dict.fromkeys(calls)
    records = {r.call_id: r for r in app.calls.newest(app.recipes.load(recipe).name, limit=last) if r.call_id in call_ids}
    chosen_records = [_find_record(call, records, recipe) for call in call_ids]
    tests = [(r, make_recipe_test(_load_case(app, r), name=r.call_id, facts=facts, lacks=lacks)) for r in chosen_records]
    return tuple(str(app.records.recipe_tests.add(user_id(record.user_id), recipe, test)) for record, test in tests)


def _find_record(call: str, records: Mapping[str, CallRecord], recipe: str) -> CallRecord:
    if call not in records:
        raise InputError(f"{call[:80]}: no call of {recipe} among the newest: expected one that pandora recipes lessons names")
    return records[call]


def _load_case(app: App, record: CallRecord) -> CallCase:
    try:
        return CallCase.model_validate_json(app.vault.read(record.request_ref))
    except (DocumentError, ValidationError) as error:
        raise InputError(f"{record.call_id}: its inputs are gone or damaged: expected a call whose inputs are stored") from error
