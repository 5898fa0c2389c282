"""What a commit replaces, kept until its `turn.json` is written: a commit that is cut off can be read as never begun."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from pandora_dagster.stores.files import disk_errors, encode_text, sha, write_all
from pandora_dagster.stores.layout import KEPT


def keep_replaced(folder: Path, replaced: Mapping[str, str]) -> None:
    """Keep each document that is about to be replaced (name -> its committed text) under its sha256. Raises StoreError.

    A commit that was cut off earlier may have left other bytes in the document, so the text comes from memory.
    """
    if not replaced:
        return
    kept = folder / KEPT
    with disk_errors(kept):
        kept.mkdir(exist_ok=True)
    write_all(kept, {sha(text): encode_text(name, text) for name, text in replaced.items()})


def release_replaced(folder: Path) -> None:
    """Drop what was kept; what cannot be dropped harms nobody and is dropped next time."""
    if (folder / KEPT).is_dir():
        shutil.rmtree(folder / KEPT, ignore_errors=True)
