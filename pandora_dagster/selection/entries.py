"""Level L1 (003): a turn as one line of keywords and its summary, from its manifest alone. The one place where an entry is made."""

from hashlib import sha256

from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.text.credentials import redact


def entry_head(manifest: Manifest) -> str:
    """What an entry begins with: `2026-01-04 (laptop, gpu): `."""
    topics = ", ".join(" ".join(str(topic).split()) for topic in (manifest.summary or {}).get("topics", ()))
    return redact(f"{manifest.created_at[:10]}{f' ({topics})' if topics else ''}: ")


def turn_entry(manifest: Manifest) -> str:
    """`2026-01-04 (laptop, gpu): Searched for laptops.`; credentials taken out.

    It does not change when the turn is archived or restored: the summary is the turn's own.
    """
    said = " ".join(str((manifest.summary or {}).get("summary", "")).split())
    return entry_head(manifest) + redact(said or "A turn without a summary.")


def entry_sha(entry: str) -> str:
    return sha256(entry.encode()).hexdigest()
