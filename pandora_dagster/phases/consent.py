"""Consent to a profile across sessions, and its erasure (002 section 4). Consent looks forward: only what is stated after it is kept."""

from dataclasses import dataclass

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.phases.kit import Kit
from pandora_dagster.text.dates import stamp


@dataclass(frozen=True, slots=True)
class Standing:
    """How a person stands to a profile."""

    given: bool
    since: str = ""
    fact_count: int = 0


def standing(kit: Kit, user: UserId) -> Standing:
    """Whether the person consents; raises DocumentError for a damaged profile."""
    profile = kit.facts.profile(user)
    return Standing(True, profile.consented_at, len(profile.facts)) if profile else Standing(False)


def give_consent(kit: Kit, user: UserId) -> None:
    """Facts of later turns are kept across sessions from now on; a consent that stands stays as it is."""
    kit.facts.consent(user, at=stamp(kit.clock().replace(microsecond=0)), after_turn=_newest(kit, user))


def withdraw_consent(kit: Kit, user: UserId) -> int:
    """Delete the profile and its audit; returns how many facts went."""
    return kit.facts.withdraw(user)


def erase_facts(kit: Kit, user: UserId, *, sessions: bool = False) -> tuple[int, int]:
    """Erase the profile's facts, with `sessions` those of all sessions too; returns how many of each went."""
    return kit.facts.erase_profile(user, after_turn=_newest(kit, user)), kit.facts.erase_sessions(user) if sessions else 0


def _newest(kit: Kit, user: UserId) -> int:
    """The number of the person's newest turn, by the documents."""
    return max((key.number for key in kit.turns.keys(user)), default=0)
