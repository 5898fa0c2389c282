"""LoCoMo: hard facts of a session, and answers to questions over all sessions of a conversation."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from compression_tasks.literal import content_words, literal, share

Compressor = Callable[[str, int], str]
_NUMBER = re.compile(r"\$?\d[\d,.]*\d%?|\d+%?")
_QUOTED = re.compile(r"\"([^\"\n]{2,80})\"|\u201c([^\u201d\n]{2,80})\u201d")
_NAME = re.compile(r"(?<=[\w,;:\-\u2019'] )[A-Z][\w'&\-]+(?: [A-Z][\w'&\-]+)*")
_PRONOUNS = ("I", "I'm", "I've", "I'll", "I'd", "I\u2019m")
WINDOW = 30


def sessions(data: Path) -> dict[str, list[dict[str, Any]]]:
    """Conversation -> its sessions in order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (data / "locomo" / "conversations_dev.jsonl").read_text(encoding="utf-8").splitlines():
        session = json.loads(line)
        found.setdefault(session["user_id"], []).append(session)
    return found


def as_text(session: dict[str, Any]) -> str:
    return "\n".join(f"{m.get('name') or m['role']}: {m['content']}" for m in session["messages"])


def hard_facts(session: dict[str, Any]) -> set[str]:
    """Numbers, quoted titles and proper names inside sentences, other than the speakers', as literal forms."""
    speakers = {literal(m.get("name") or "") for m in session["messages"]}
    found: set[str] = set()
    for message in session["messages"]:
        text = message["content"]
        found |= {literal(m) for m in _NUMBER.findall(text)}
        found |= {literal(a or b) for a, b in _QUOTED.findall(text)}
        names = [n for n in _NAME.findall(text) if n not in _PRONOUNS]
        found |= {literal(n) for n in names if not any(literal(n) in s or s in literal(n) for s in speakers if s)}
    source = f" {literal(as_text(session))} "
    return {f for f in found if f and f" {f} " in source}


def facts_kept(data: Path, compress: Compressor, count: Callable[[str], int], ratio: float) -> float:
    kept = all_ = 0
    for session in (s for group in sessions(data).values() for s in group):
        text = as_text(session)
        facts = hard_facts(session)
        out = f" {literal(compress(text, int(count(text) / ratio)))} "
        all_ += len(facts)
        kept += sum(f" {f} " in out for f in facts)
    return share(kept, all_)


def answers_kept(data: Path, compress: Compressor, count: Callable[[str], int], ratio: float = 5.8) -> tuple[float, float]:
    """Share of single- and multi-hop answers whose words all stand; and whose words stand within 30 content words."""
    questions = list(_questions(data))
    anywhere = near = all_ = 0
    for user, group in sessions(data).items():
        text = "\n".join(f"{s['created_at'][:10]}\n{as_text(s)}" for s in group)
        kept = content_words(compress(text, int(count(text) / ratio)))
        known = set(kept)
        for question in (q for q in questions if q["user_id"] == user):
            answer = set(content_words(str(question["answer"])))
            if not answer:
                continue
            all_ += 1
            anywhere += answer <= known
            near += answer <= known and _within(kept, answer)
    return share(anywhere, all_), share(near, all_)


def _questions(data: Path) -> Iterator[dict[str, Any]]:
    for line in (data / "locomo" / "questions_dev.jsonl").read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        if question["category"] in ("multi-hop", "single-hop") and "answer" in question:
            yield question


def _within(text: list[str], wanted: set[str]) -> bool:
    last: dict[str, int] = {}
    for index, word in enumerate(text):
        if word in wanted:
            last[word] = index
            if len(last) == len(wanted) and index - min(last.values()) < WINDOW:
                return True
    return False
