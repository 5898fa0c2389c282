"""What `pandora doctor` found of one part."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One part and how it stands; `remedy` says what to do where it does not, or where it could do better."""

    part: str
    ok: bool
    says: str
    remedy: str = ""
