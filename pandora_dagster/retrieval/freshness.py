"""How old a cached thing is, and how much of its life is left."""

from datetime import datetime

from pandora_dagster.language.timestamps import parse_timestamp

HOUR_S = 3_600


def age_hours(since: str, now: datetime) -> float:
    """Hours since an ISO time, not below 0 (a clock may run ahead), to one decimal."""
    return round(max(0.0, (now - parse_timestamp(since)).total_seconds() / HOUR_S), 1)


def hours_left(expires_at: str, now: datetime) -> float:
    """Hours until an ISO time; negative where it is past; to one decimal."""
    return round((parse_timestamp(expires_at) - now).total_seconds() / HOUR_S, 1)


def is_expired(expires_at: str, now: datetime) -> bool:
    return parse_timestamp(expires_at) <= now


def freshness_score(created_at: str, expires_at: str, now: datetime) -> float:
    """1 - age/lifetime, 1 when new and 0 from its expiry on (decision 19)."""
    born = parse_timestamp(created_at)
    life = (parse_timestamp(expires_at) - born).total_seconds()
    share = 1 - (now - born).total_seconds() / life if life > 0 else 0.0
    return round(min(1.0, max(0.0, share)), 2)
