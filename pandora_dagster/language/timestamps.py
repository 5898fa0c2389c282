"""Timestamps of documents: ISO 8601 in UTC."""

from datetime import UTC, datetime


def parse_timestamp(text: str) -> datetime:
    """An ISO 8601 time as an aware UTC datetime; without an offset it is taken as UTC; raises ValueError."""
    parsed = datetime.fromisoformat(text)
    try:
        return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except OverflowError as error:  # 0001-01-01T00:00:00+14:00
        raise ValueError(f"{text}: expected a time in the years 1 to 9999 of UTC") from error


def format_timestamp(time: datetime) -> str:
    """Format a time as ISO 8601 UTC, e.g. `2026-01-04T14:30:00Z`."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
