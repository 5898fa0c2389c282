"""A condensed text, rid of the sentences that its original does not bear out.

Knows ledger, original and text; only leaves out. Pure.
"""

from collections.abc import Iterable

from pandora_dagster.compression.facts.fact_types import Ledger, Outcome, Verdict
from pandora_dagster.compression.judge.grounding import SourceIndex
from pandora_dagster.compression.judge.verification import verify
from pandora_dagster.compression.read.dialogue_lines import SPEAKER_LINE
from pandora_dagster.compression.words.normalization import padded
from pandora_dagster.compression.words.word_classes import clauses

_ROUNDS = 4
"""What contradicts may show only when another contradiction is gone."""


def borne_out(text: str, ledger: Ledger, source: SourceIndex, *, reference: str = "") -> str:
    """`text` without the sentences in which a value of the original is changed, one is made up, or a denial is turned around.

    `reference` is the line that leads to the stored original, "" where there is none."""
    for _ in range(_ROUNDS):
        untrue = verify(ledger, source, text, reference=reference).of(Outcome.MUTATED, Outcome.INVENTED)
        shorter = _without(text, untrue) if untrue else text
        if shorter == text:
            break
        text = shorter
    return text


def _without(text: str, untrue: Iterable[Verdict]) -> str:
    wrong = tuple(dict.fromkeys(padded(v.evidence or v.text) for v in untrue))
    lines = (_line_without(line, wrong) for line in text.split("\n"))
    return "\n".join(line for line in lines if line is not None)


def _line_without(line: str, wrong: tuple[str, ...]) -> str | None:
    """A line without its wrong sentences; of a table the whole row. None where nothing is left of it but who speaks."""
    own = padded(line)
    if not any(said in own for said in wrong):
        return line
    if line.startswith("|"):
        return None
    kept = [clause for clause in clauses(line) if not any(said in padded(clause) for said in wrong)]
    if sum(map(len, kept)) == 0 or kept == clauses(line):
        return None
    label = SPEAKER_LINE.match(line)
    left = " ".join(kept)
    return f"{label.group()}{left}" if label and not left.startswith(label.group()) else left
