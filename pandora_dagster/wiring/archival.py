"""A house's archival: its desk, and the nights over it. Builds adapters; the order of steps is `phases.archive_day`'s."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from urllib.parse import quote

from pandora_dagster.contracts.archive import ArchiveReport
from pandora_dagster.contracts.archive_days import ArchivedDay
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.levels import LevelReport, Subject
from pandora_dagster.contracts.retention import PruneReport
from pandora_dagster.contracts.words import TurnState
from pandora_dagster.errors import ConfigurationError, DocumentError, InputError
from pandora_dagster.execution.apart import Apart, spare_processors
from pandora_dagster.phases.archive_day import OnRow, archive_turns
from pandora_dagster.phases.archive_selection import Selected, select
from pandora_dagster.phases.archived_days import archived_days, archived_on
from pandora_dagster.phases.archiving import ArchiveDesk, ArchiveRules
from pandora_dagster.phases.digests import digest_users, lost_narratives
from pandora_dagster.phases.levels import OnRow as OnLevel
from pandora_dagster.phases.narratives import PHASE as SESSIONS
from pandora_dagster.phases.narratives import lost_turns, of_one_user, summarise_sessions
from pandora_dagster.phases.retention import OnTurn, prune
from pandora_dagster.selection.due import day_of, last_due_day
from pandora_dagster.stores.archived import ArchivedFolders
from pandora_dagster.stores.cold import ColdFiles
from pandora_dagster.stores.first_day import FirstDay
from pandora_dagster.stores.holds import HoldFiles
from pandora_dagster.stores.index_rebuild import Preambles
from pandora_dagster.wiring.building import told
from pandora_dagster.wiring.house import House
from pandora_dagster.wiring.levels import open_levels

_MANY = 256
"""Turns for which processes of their own pay: under that their start takes longer than they save."""


def open_archive(house: House, *, after_days: int | None = None, run_id: str = "") -> ArchiveDesk:
    """The desk of an archival; `after_days` in the place of the setting's, `run_id` of the Dagster run it belongs to."""
    settings = house.settings
    cold = ColdFiles(settings.root)
    rules = ArchiveRules(
        zone=settings.zone,
        after_days=settings.archive_after_days,
        ratio=settings.archive_ratio,
        document_tokens=settings.archive_document_tokens,
        concurrency=settings.archive_concurrency,
    )
    return ArchiveDesk(
        kit=house.kit,
        cold=cold,
        folders=ArchivedFolders(settings.root, cold, house.kit.counter),
        holds=HoldFiles(settings.root),
        rules=rules if after_days is None else replace(rules, after_days=after_days),
        preamble=Preambles(house.sessions).before,
        run_id=run_id,
    )


@dataclass(frozen=True, slots=True)
class Archival:
    """Nights over one house."""

    house: House

    def last_due(self, now: datetime) -> date:
        """The newest day whose turns are due at `now`."""
        return last_due_day(now, self.house.settings.zone, self.house.settings.archive_after_days)

    def waiting(self, now: datetime) -> frozenset[date]:
        """The days that hold turns due at `now`; the store's first day is noted on the way. Raises StoreError."""
        desk = open_archive(self.house)
        due = frozenset(one.day for one in select(replace(desk, kit=replace(desk.kit, clock=lambda: now))).due)
        if due:
            FirstDay(self.house.settings.root).extend(min(due), known=self.house.settings.first_day)
        return due

    def run(self, days: Collection[date], *, run_id: str, on_row: OnRow) -> ArchiveReport:
        """Archive what is due of these days. Raises InputError for a day that is not due yet, StoreError."""
        desk = open_archive(self.house, run_id=run_id)
        last = self.last_due(desk.kit.clock())
        if early := sorted(day for day in days if day > last):
            raise InputError(f"{early[0]}: its turns are not due yet: expected days up to {last}")
        return self.archive(select(desk, days=days), desk, on_row=on_row)

    def archive(self, selected: Selected, desk: ArchiveDesk, *, on_row: OnRow) -> ArchiveReport:
        """Archive what was selected. Where it is much, texts are shortened in other processes, one for each spare processor and at most
        PANDORA_ARCHIVE_CONCURRENCY, unless a model shortens them. Raises StoreError."""
        work = archive_turns(selected, desk, on_row=on_row)
        processes = min(spare_processors(), desk.rules.concurrency)
        if len(selected.due) < _MANY or processes < 1:
            return self.house.run(work)
        apart = Apart(processes, desk.kit.counter, told)
        try:
            with self.house.compression.engine.elsewhere(apart):
                return self.house.run(work)
        finally:
            apart.close()

    def days(self, days: Collection[date], *, originals: bool = True) -> Iterator[ArchivedDay]:
        """Each day as its manifests, folders and the index have it now, and with `originals` its cold objects, each of them read."""
        return archived_days(days, open_archive(self.house), originals=originals)

    def page(self, day: date) -> str:
        """Where `pandora ui` shows the day's documents with their lineage; "" where it shows none."""
        port = self.house.settings.pages_port
        return f"http://127.0.0.1:{port}/archive/{day}" if port else ""

    def lineage_page(self, document: str) -> str:
        """Where `pandora ui` shows the lineage of a document; "" where it shows none."""
        port = self.house.settings.pages_port
        return f"http://127.0.0.1:{port}/lineage/{quote(document, safe=':/')}" if port else ""

    def subjects(self, days: Collection[date], *, people: bool) -> dict[date, frozenset[Subject]]:
        """The sessions, or the people, that have turns archived on these days, or whose last turn is of one of them: with that day
        over they are at rest, whatever becomes of that turn."""
        wanted = set(days)
        found: dict[date, set[Subject]] = {}
        for user in self.house.turns.users():
            for session, turns in self.house.kit.index.sessions(user).items():
                archived = {self._day(one.last_activity) for one in turns if one.state == TurnState.ARCHIVED}
                last = {max(day for one in turns if (day := self._day(one.last_activity)))} if archived - {None} else set[date]()
                for day in archived | last:
                    if day and day in wanted:
                        found.setdefault(day, set()).add(Subject(user, "" if people else session))
        return {day: frozenset(subjects) for day, subjects in found.items()}

    def level(self, name: str, subjects: Collection[Subject], *, run_id: str, on_row: OnLevel) -> LevelReport:
        """Bring `session_summaries` or `user_digests` of these subjects up to date. Raises StoreError."""
        desk = open_levels(self.house, run_id=run_id)
        ordered = sorted(subjects, key=lambda one: (one.user, one.session))
        if name == SESSIONS:
            return self.house.run(summarise_sessions(desk, [(one.user, one.session) for one in ordered], on_row=on_row))
        return self.house.run(digest_users(desk, [one.user for one in ordered], on_row=on_row))

    def lost(self, subjects: Collection[Subject]) -> Iterator[str]:
        """What speaks against `no_fact_lost` of these narratives or digests, a sentence each that names its subject."""
        desk = open_levels(self.house)
        sessions = of_one_user(desk)
        for subject in sorted(subjects, key=lambda one: (one.user, one.session)):
            try:
                if subject.session:
                    faults = lost_turns(desk, subject, sessions(subject.user).get(subject.session, ()))
                else:
                    faults = lost_narratives(desk, subject.user)
            except DocumentError as error:
                faults = (str(error),)
            yield from (f"{subject}: {fault}" for fault in faults)

    def archived(self, days: Collection[date]) -> Iterator[TurnKey]:
        """The archived turns of these days."""
        return (key for _, key in archived_on(days, self.house.kit.index, self.house.settings.zone))

    def prune(self, *, by: str, on_turn: OnTurn = lambda turn: None) -> PruneReport:
        """Delete the originals whose time is over by PANDORA_COLD_KEEP_DAYS. Raises ConfigurationError where they are kept for ever."""
        days = self.house.settings.cold_keep_days
        if not days:
            raise ConfigurationError(
                "PANDORA_COLD_KEEP_DAYS: 0: originals are kept for ever: expected days", hint="set PANDORA_COLD_KEEP_DAYS, e.g. to 400"
            )
        return prune(open_archive(self.house), older_than_days=days, by=by, on_turn=on_turn)

    def by_day(self) -> tuple[tuple[date, int], ...]:
        """Every day that has archived turns, newest first, and how many."""
        days = Counter(day for one in self.house.kit.index.standing(archived=True) if (day := self._day(one.last_activity)))
        return tuple(sorted(days.items(), reverse=True))

    def _day(self, moment: str) -> date | None:
        try:
            return day_of(moment, self.house.settings.zone)
        except ValueError:
            return None
