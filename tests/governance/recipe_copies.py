"""A copy of the shipped recipes that a test may edit."""

import shutil
from pathlib import Path

from pandora_dagster.shipped import shipped_folder


def copied(folder: Path) -> Path:
    """`recipes/` and `prompts/` below `folder`."""
    for part in ("recipes", "prompts"):
        shutil.copytree(shipped_folder() / part, folder / part)
    return folder


def copied_without_evidence(folder: Path) -> Path:
    """The recipes of a user who switched the evidence gate of answers off: an answer may state what no source says."""
    copied(folder)
    for mode in ("chat", "code"):
        edit(folder, f"recipes/pipeline/phase5_synthesizer_{mode}.yaml", "evidence_required: true", "evidence_required: false")
    return folder


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Replace a text that must be there in `recipes/...` or `prompts/...`."""
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{name}: {old!r} is not there"
    path.write_text(text.replace(old, new), encoding="utf-8")
