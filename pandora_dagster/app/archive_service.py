"""Archival of one store: archival runs over days, summary levels, and pruning of originals; the package `archive` does the work."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from urllib.parse import quote

from pandora_dagster.app.application import App
from pandora_dagster.app.composition import print_notice
from pandora_dagster.archive.archive_run import OnRow, archive_turns
from pandora_dagster.archive.archive_selection import ArchiveSelection, last_due_day, local_day, select_turns
from pandora_dagster.archive.day_verification import MAX_ROWS, archived_turns
from pandora_dagster.archive.day_verification import verify_days as verify_archived_days
from pandora_dagster.archive.level_batches import level_id
from pandora_dagster.archive.level_runs import LevelContext, LevelRules
from pandora_dagster.archive.level_runs import OnRow as OnLevelRow
from pandora_dagster.archive.original_retention import OnTurn, prune
from pandora_dagster.archive.session_narratives import PHASE as SESSIONS
from pandora_dagster.archive.session_narratives import narrative_faults, summarize_sessions, user_sessions
from pandora_dagster.archive.turn_archival import ArchiveContext, ArchiveRules
from pandora_dagster.archive.user_digests import digest_faults, digest_users
from pandora_dagster.contracts.archive_records import ArchivedDay, ArchiveReport
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.retention import PruneReport
from pandora_dagster.contracts.user.summary_levels import LevelReport, LevelSubject
from pandora_dagster.errors import ConfigurationError, DocumentError, InputError
from pandora_dagster.execution.fit.worker_pool import CompressionWorkerPool, spare_processor_count
from pandora_dagster.settings import process_environment


def open_levels(app: App, *, quiet_days: int | None = None, run_id: str = "") -> LevelContext:
    """The context of the summary levels; `quiet_days` without activity replace PANDORA_ARCHIVE_AFTER_DAYS, `run_id` is the Dagster run."""
    settings = app.settings
    days = settings.archive_after_days if quiet_days is None else quiet_days
    rules = LevelRules(zone=settings.zone, quiet_days=days, concurrency=settings.archive_concurrency)
    return LevelContext(app.dependencies, app.archive.levels, rules, app.dependencies.lineage, run_id)


_MIN_TURNS_FOR_WORKERS = 256
"""For fewer turns the start of worker processes takes longer than they save."""
_MIN_TOKENS_FOR_WORKERS = 10_000
"""In a smaller run, texts from this size on go to a worker, which has a time limit; shorter ones take only seconds in this process."""


def open_archive(app: App, *, after_days: int | None = None, run_id: str = "") -> ArchiveContext:
    """The context of an archival run; `after_days` replaces PANDORA_ARCHIVE_AFTER_DAYS, `run_id` is the Dagster run."""
    settings = app.settings
    rules = ArchiveRules(
        zone=settings.zone,
        after_days=settings.archive_after_days,
        ratio=settings.archive_ratio,
        document_tokens=settings.archive_document_tokens,
        concurrency=settings.archive_concurrency,
    )
    return ArchiveContext(
        deps=app.dependencies,
        cold=app.archive.cold,
        folders=app.archive.folders,
        holds=app.archive.holds,
        rules=rules if after_days is None else replace(rules, after_days=after_days),
        preamble=app.archive.preamble,
        run_id=run_id,
    )


@dataclass(frozen=True, slots=True)
class ArchiveService:
    """Archival runs over one application."""

    app: App

    def last_due(self, now: datetime) -> date:
        """The newest day whose turns are due at `now`."""
        return last_due_day(now, self.app.settings.zone, self.app.settings.archive_after_days)

    def due_days(self, now: datetime) -> frozenset[date]:
        """The days with turns due at `now`; raises StoreError."""
        ctx = open_archive(self.app)
        return frozenset(turn.day for turn in select_turns(replace(ctx, deps=replace(ctx.deps, clock=lambda: now))).due)

    def run(self, days: Collection[date], *, run_id: str, on_row: OnRow) -> ArchiveReport:
        """Archive the due turns of these days. Raises InputError for a day that is not due yet, StoreError."""
        ctx = open_archive(self.app, run_id=run_id)
        last = self.last_due(ctx.deps.clock())
        if undue_days := sorted(day for day in days if day > last):
            raise InputError(f"{undue_days[0]}: its turns are not due yet: expected days up to {last}")
        return self.archive(select_turns(ctx, days=days), ctx, on_row=on_row)

    def archive(self, selected: ArchiveSelection, ctx: ArchiveContext, *, on_row: OnRow) -> ArchiveReport:
        """Archive the selected turns. Raises StoreError.

        Worker processes compress the texts, unless a model does: from 256 turns on all of them, if a processor is spare, else those of
        10,000 tokens and more. There is one per spare processor, at least one and at most PANDORA_ARCHIVE_CONCURRENCY. A text that takes a
        worker longer than ten minutes stays whole."""
        spare = min(spare_processor_count(), ctx.rules.concurrency)
        min_tokens = 0 if spare and len(selected.due) >= _MIN_TURNS_FOR_WORKERS else _MIN_TOKENS_FOR_WORKERS
        pool = CompressionWorkerPool(max(spare, 1), ctx.deps.counter, print_notice, process_environment(), min_tokens=min_tokens)
        try:
            with self.app.compression.engine.using_compressor(pool):
                return self.app.run(archive_turns(selected, ctx, on_row=on_row))
        finally:
            pool.close()

    def verify_days(self, days: Collection[date], *, originals: bool = True, max_rows: int | None = MAX_ROWS) -> Iterator[ArchivedDay]:
        """Verify each day against its manifests, folders and the index, and with `originals` against each cold object."""
        return verify_archived_days(days, open_archive(self.app), originals=originals, max_rows=max_rows)

    def page(self, day: date) -> str:
        """The URL where `pandora ui` shows the day's documents with their lineage; "" where pages are off."""
        port = self.app.settings.pages_port
        return f"http://127.0.0.1:{port}/archive/{day}" if port else ""

    def lineage_page(self, document: str) -> str:
        """The URL where `pandora ui` shows the lineage of a document; "" where pages are off."""
        port = self.app.settings.pages_port
        return f"http://127.0.0.1:{port}/lineage/{quote(document, safe=':/')}" if port else ""

    def subjects(self, days: Collection[date], *, by_user: bool) -> dict[date, frozenset[LevelSubject]]:
        """Day -> the sessions, or with `by_user` the users, that have an archived turn of that day. A session that has archived turns also
        counts on the day of its last turn, archived or not."""
        requested_days = set(days)
        by_day: dict[date, set[LevelSubject]] = {}
        for user in self.app.turns.users():
            for session, turns in self.app.dependencies.index.sessions(user).items():
                dated_turns = [(day, turn) for turn in turns if (day := self._day(turn.last_activity))]
                session_days = {day for day, turn in dated_turns if turn.state == TurnState.ARCHIVED}
                if session_days:
                    session_days.add(max(day for day, _ in dated_turns))
                for day in session_days & requested_days:
                    by_day.setdefault(day, set()).add(LevelSubject(user, "" if by_user else session))
        return {day: frozenset(subjects) for day, subjects in by_day.items()}

    def update_level(self, name: str, subjects: Collection[LevelSubject], *, run_id: str, on_row: OnLevelRow) -> LevelReport:
        """Bring `session_summaries` or `user_digests` of these subjects up to date. Raises StoreError."""
        ctx = open_levels(self.app, run_id=run_id)
        ordered = sorted(subjects, key=lambda subject: (subject.user, subject.session))
        if name == SESSIONS:
            return self.app.run(summarize_sessions(ctx, [(subject.user, subject.session) for subject in ordered], on_row=on_row))
        return self.app.run(digest_users(ctx, [subject.user for subject in ordered], on_row=on_row))

    def source_faults(self, subjects: Collection[LevelSubject]) -> Iterator[str]:
        """One sentence for each fault of the check `sources_linked` in these narratives or digests; it begins with its id."""
        ctx = open_levels(self.app)
        sessions = user_sessions(ctx)
        for subject in sorted(subjects, key=lambda subject: (subject.user, subject.session)):
            try:
                if subject.session:
                    faults = narrative_faults(ctx, subject, sessions(subject.user).get(subject.session, ()))
                else:
                    faults = digest_faults(ctx, subject.user)
            except DocumentError as error:
                faults = (str(error),)
            yield from (f"{level_id(subject)}: {fault}" for fault in faults)

    def archived(self, days: Collection[date]) -> Iterator[TurnKey]:
        """The archived turns of these days."""
        return (key for _, key in archived_turns(days, self.app.dependencies.index, self.app.settings.zone))

    def prune(self, *, by: str, on_turn: OnTurn = lambda turn: None) -> PruneReport:
        """Delete originals older than PANDORA_COLD_KEEP_DAYS. Raises ConfigurationError where they are kept for ever."""
        days = self.app.settings.cold_keep_days
        if not days:
            raise ConfigurationError(
                "PANDORA_COLD_KEEP_DAYS: 0: originals are kept for ever: expected days", hint="set PANDORA_COLD_KEEP_DAYS, e.g. to 400"
            )
        return prune(open_archive(self.app), older_than_days=days, by=by, on_turn=on_turn)

    def by_day(self) -> tuple[tuple[date, int], ...]:
        """Every day with archived turns, newest first, and their number."""
        days = Counter(day for turn in self.app.dependencies.index.activities(archived=True) if (day := self._day(turn.last_activity)))
        return tuple(sorted(days.items(), reverse=True))

    def _day(self, moment: str) -> date | None:
        try:
            return local_day(moment, self.app.settings.zone)
        except ValueError:
            return None
