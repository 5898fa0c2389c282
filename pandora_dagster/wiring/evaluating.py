"""Prompts scored from the call records of an open house. Knows where the records, outcomes and versions come from; judges nothing."""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from pandora_dagster.contracts.calls import CallRecord
from pandora_dagster.governance.figures import Figures, figures
from pandora_dagster.governance.outcomes import Outcomes
from pandora_dagster.governance.regressions import WINDOW, Comparison, compared
from pandora_dagster.stores.corrections import CorrectionFiles
from pandora_dagster.wiring.building import now
from pandora_dagster.wiring.house import House


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The scores of one house. Made anew for each look: outcomes of turns change."""

    house: House
    outcomes: Outcomes

    def versions(self, day: str) -> Mapping[tuple[str, str], Figures]:
        """Recipe name and version -> figures of the day's calls (a day of PANDORA_TIMEZONE); raises StoreError."""
        return figures(self.day(day), lambda record: (record.recipe, record.recipe_version), self.outcomes.of)

    def layers(self, day: str) -> Mapping[str, Figures]:
        """Layer -> figures of the day's calls; raises StoreError."""
        return figures(self.day(day), lambda record: record.model_layer.value, self.outcomes.of)

    def window(self, recipe: str, version: str) -> Figures:
        """Figures of the newest calls of a version; `recipe` by its own name."""
        records = self.house.calls.newest(recipe, version=version, limit=WINDOW)
        return figures(records, lambda record: "", self.outcomes.of).get("", Figures())

    def comparison(self, path: str) -> Comparison:
        """The version of `{category}/{name}` in production beside the one before it."""
        standing = self.house.versions.production(path)
        name = self.house.cookbook.load(path).name
        if not standing.predecessor:
            return compared(path, standing.version, Figures(), "", Figures())
        after, before = self.window(name, standing.version), self.window(name, standing.predecessor)
        return compared(path, standing.version, after, standing.predecessor, before)

    def comparisons(self) -> tuple[Comparison, ...]:
        """Of every recipe that ever ran."""
        return tuple(self.comparison(path) for path in self.house.cookbook.names() if self.house.versions.production(path).version)

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


def open_corrections(house: House) -> CorrectionFiles:
    """What people corrected."""
    return CorrectionFiles(house.settings.root, now, secrets.token_hex)


def open_evaluation(house: House) -> Evaluation:
    """Over an open house; reads when it is asked."""
    return Evaluation(house, Outcomes(house.turns.manifest, open_corrections(house)))
