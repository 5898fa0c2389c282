"""003's cut for entries that may not be summarised now. Nothing that is stored or sent to a model comes from it (DECISIONS 1)."""

_ENTRY_CHARS = 200


def truncate_entries(entries: list[str], max_total_chars: int = 2000) -> str:
    """The first 200 characters of each entry, joined by ` | `, cut to `max_total_chars` characters (003 "truncate_entries")."""
    cut = " | ".join(entry[:_ENTRY_CHARS] for entry in entries if entry)
    return cut[: max(0, max_total_chars)]
