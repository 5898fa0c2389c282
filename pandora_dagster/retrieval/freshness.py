"""Age, expiry and freshness of cached research and visits."""

from datetime import datetime

from pandora_dagster.language.timestamps import parse_timestamp

_HOUR_S = 3_600


def age_hours(since: str, now: datetime) -> float:
    """Hours since an ISO time, not below 0 (a clock may run ahead), to one decimal."""
    return round(max(0.0, (now - parse_timestamp(since)).total_seconds() / _HOUR_S), 1)


def hours_left(expires_at: str, now: datetime) -> float:
    """Hours until an ISO time; negative where it is past; to one decimal."""
    return round((parse_timestamp(expires_at) - now).total_seconds() / _HOUR_S, 1)


def is_expired(expires_at: str, now: datetime) -> bool:
    return parse_timestamp(expires_at) <= now


def freshness_score(created_at: str, expires_at: str, now: datetime) -> float:
    """1 - age/lifetime, 1 when new and 0 from its expiry on (decision 19, docs/decisions/19-section-2-headings.md)."""
    created = parse_timestamp(created_at)
    lifetime_s = (parse_timestamp(expires_at) - created).total_seconds()
    share = 1 - (now - created).total_seconds() / lifetime_s if lifetime_s > 0 else 0.0
    return round(min(1.0, max(0.0, share)), 2)
