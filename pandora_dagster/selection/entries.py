"""Level L1 (003): a turn as one line of keywords and its summary, from its manifest alone. The one place where an entry is made."""

from hashlib import sha256

from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.text.credentials import redacted


def entry_of(manifest: Manifest) -> str:
    """`2026-01-04 (laptop, gpu): Searched for laptops.`; credentials taken out.

    It does not change when the turn is archived or restored: the summary is the turn's own.
    """
    summary = manifest.summary or {}
    topics = ", ".join(" ".join(str(topic).split()) for topic in summary.get("topics", ()))
    said = " ".join(str(summary.get("summary", "")).split()) or "A turn without a summary."
    return redacted(f"{manifest.created_at[:10]}{f' ({topics})' if topics else ''}: {said}")


def entry_sha(entry: str) -> str:
    return sha256(entry.encode()).hexdigest()
