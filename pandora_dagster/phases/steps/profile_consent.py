"""Consent to a profile across sessions, and its erasure (002 section 4). Consent looks forward: only what is stated after it is kept."""

from dataclasses import dataclass

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.documents.timestamps import format_timestamp
from pandora_dagster.phases.core.dependencies import PhaseDependencies


@dataclass(frozen=True, slots=True)
class ConsentStatus:
    """How a person stands to a profile."""

    given: bool
    since: str = ""
    fact_count: int = 0


def consent_status(deps: PhaseDependencies, user: UserId) -> ConsentStatus:
    """Whether the person consents; raises DocumentError for a damaged profile."""
    profile = deps.facts.profile(user)
    return ConsentStatus(True, profile.consented_at, len(profile.facts)) if profile else ConsentStatus(False)


def give_consent(deps: PhaseDependencies, user: UserId) -> None:
    """Facts of later turns are kept across sessions from now on; a consent that stands stays as it is."""
    deps.facts.consent(user, at=format_timestamp(deps.clock().replace(microsecond=0)), after_turn=_newest_turn(deps, user))


def withdraw_consent(deps: PhaseDependencies, user: UserId) -> int:
    """Delete the profile and its audit; returns how many facts went."""
    return deps.facts.withdraw(user)


def erase_facts(deps: PhaseDependencies, user: UserId, *, sessions: bool = False) -> tuple[int, int]:
    """Erase the profile's facts, with `sessions` those of all sessions too; returns how many of each went."""
    return deps.facts.erase_profile(user, after_turn=_newest_turn(deps, user)), deps.facts.erase_sessions(user) if sessions else 0


def _newest_turn(deps: PhaseDependencies, user: UserId) -> int:
    """The number of the person's newest turn, by the documents."""
    return max((key.number for key in deps.turns.keys(user)), default=0)
