"""The compression of a text, with a verdict for every fact of it. Pure: no model, no file, no clock.

Order: within budget, nothing changes; else the method of the content condenses, the ledger judges, what is missing is put
back within the target; where a critical fact can not be kept, the result says so and holds no text (a HALT).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pandora_dagster.compression.blocks import is_code
from pandora_dagster.compression.detection import detect_content_type
from pandora_dagster.compression.facts import LINES, Fact, FactKind, Ledger, Outcome, Rank, Verdict
from pandora_dagster.compression.grounding import REFERENCE, Source
from pandora_dagster.compression.ledger import take_ledger
from pandora_dagster.compression.methods import Method, has_sections, is_tool_shaped, method
from pandora_dagster.compression.normal import standing_in
from pandora_dagster.compression.restoring import restored
from pandora_dagster.compression.rules import Rules
from pandora_dagster.compression.summary_check import SummaryCheck, is_a_summary
from pandora_dagster.compression.verification import Verification, absent, verify
from pandora_dagster.contracts.ports import CountsTokens
from pandora_dagster.contracts.words import ContentType
from pandora_dagster.errors import InputError
from pandora_dagster.text.credentials import redacted

_ROOM = (1.0, 0.9, 0.75, 0.5, 0.25, 0.0)
"""Shares of the target that the method gets, one after the other, while critical facts are missing; the first two where there are
none, and the text is no condensed text."""
_SENTENCES = frozenset((FactKind.QUERY, FactKind.ERROR, FactKind.CONSTRAINT, FactKind.DECISION))
_STORED = frozenset((ContentType.TOOL_RESULT, ContentType.PRIOR_TURN))
"""Contents whose original stays where their name says: their details may rest on a reference to it."""
_MORE = (1.0, 1.4)
"""Of what lost facts need, the room that is made for them: what goes to make room holds facts too."""
_MARKS = 3
"""Tokens by which a line that is put back is marked as such."""
_RESTORED = 0.4
"""Important facts are put back where they need at most this share of the target."""


@dataclass(frozen=True)
class Compressed:
    """What became of a text. `text` is None where it HALTed, and `halted` says why. Verdicts of a text that came back
    unchanged are made when they are asked for: a text within its budget costs no more than its token count."""

    text: str | None
    tokens: int
    original_tokens: int
    halted: str | None
    _source: str
    _content_type: ContentType | None
    """None where it was not needed: a text that comes back unchanged is looked at no further."""
    _name: str = ""
    _ledger: Ledger | None = None
    _verification: Verification | None = None

    @cached_property
    def ledger(self) -> Ledger:
        """The facts of the first original."""
        if self._ledger is not None:
            return self._ledger
        return take_ledger(self._source, self._content_type or detect_content_type(self._name, self._source))

    @cached_property
    def verification(self) -> Verification:
        return self._verification or verify(self.ledger, self._source, self.text or "")

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return self.verification.verdicts

    @property
    def counts(self) -> dict[str, int]:
        """`total`, and a number for each outcome."""
        return self.verification.counts

    @property
    def missing(self) -> tuple[str, ...]:
        """The texts of facts that are missing or changed."""
        return tuple(f.text for f in self.verification.lost)


def reference_to(name: str, content_type: ContentType) -> str:
    """The line that leads to the whole of a stored tool result or turn, "" where its name is no path."""
    is_path = "/" in name or name.endswith((".md", ".json", ".txt"))
    return f"{REFERENCE}{name}" if content_type in _STORED and is_path else ""


def compress(
    text: str,
    *,
    target_tokens: int,
    content_type: ContentType | None = None,
    query: str | None = None,
    counter: CountsTokens,
    ledger: Ledger | None = None,
    original: str = "",
    name: str = "",
) -> Compressed:
    """`text` in at most `target_tokens` tokens, each fact judged (000 section 24, 001 whole).

    Nothing that bears on `query` in it: then all counts. Credentials are left out of what is condensed. Where `text` is a
    compression already, `original` is the first original: its facts are judged, and a critical one that `text` has lost is put
    back; `ledger` is that original's, where it has been taken. `name` is the document's name, and where it is a path, details of
    a tool result may rest on a reference to it. Raises InputError for a target under 1.
    """
    if target_tokens < 1:
        raise InputError(f"compress: target_tokens: {target_tokens}: expected at least 1 token")
    tokens = counter.count(text)
    if tokens <= target_tokens:
        unchanged = Compressed(text, tokens, tokens, None, original or text, content_type, name, ledger)
        if original in ("", text) or not unchanged.verification.lost_critical:
            return unchanged
    kind = content_type or detect_content_type(name, original or text)
    clean = redacted(text)
    first = clean if original in ("", text) else redacted(original)
    source = Source(first, is_redacted=True)
    facts = ledger or take_ledger(source, kind)
    made = _Job(clean, source, target_tokens, kind, asked := (query or "").strip(), counter, facts, name).run(tokens)
    if made.text is None and asked:
        again = _Job(clean, source, target_tokens, kind, "", counter, facts, name).run(tokens)
        return made if again.text is None else again
    return made


@dataclass(frozen=True)
class _Job:
    text: str
    source: Source
    """What the ledger is of: `text` itself in the first generation."""
    target: int
    content_type: ContentType
    query: str
    counter: CountsTokens
    ledger: Ledger
    name: str

    def run(self, original_tokens: int) -> Compressed:
        if (needed := self._critical_tokens()) > self.target:
            return self._halted(original_tokens, f"critical facts alone need {needed} tokens, the target is {self.target}")
        best: _Tried | None = None
        for candidate in self._candidates():
            tried = self._tried(candidate)
            if best is None or tried.loss < best.loss:
                best = tried
            if tried.is_sound:
                break
        return self._result(original_tokens, best or self._tried(""))

    def _tried(self, text: str) -> "_Tried":
        judged = verify(self.ledger, self.source, text, reference=self._reference())
        return _Tried(text, judged, is_a_summary(text, self.source.text, self.target, self.counter))

    @cached_property
    def _must(self) -> frozenset[str]:
        return frozenset(f.key for f in self.ledger.critical)

    def _critical_tokens(self) -> int:
        """Tokens of the critical facts, those inside others counted once."""
        sentences = [f for f in self.ledger.critical if f.kind in _SENTENCES]
        values = dict.fromkeys(f.text for f in self.ledger.critical if f.kind not in _SENTENCES)
        inside = standing_in(values, " \n ".join(f.text for f in sentences))
        alone = [text for text in values if text not in inside]
        return sum(self.counter.count(f.text) for f in sentences) + self.counter.count(" ".join(alone))

    def _candidates(self) -> Iterator[str]:
        """Condensed texts, better ones last: with ever more room for what the one before had lost."""
        if self._shorter is not self.text and self.counter.count(self._shorter) <= self.target:
            yield self._shorter
        for share in _ROOM if self.ledger.critical else _ROOM[:2]:
            body = self._condensed(int(self.target * share))
            completed = self._completed(body)
            if share == 1.0:
                completed = self._with_important(completed)
            if completed.strip():
                yield completed

    @cached_property
    def _shorter(self) -> str:
        """The text without what rules let go before anything is chosen (DECISIONS 5)."""
        return Rules(self.text, self.content_type).shorter

    @cached_property
    def _method(self) -> Method:
        return method(self._shorter, self.content_type, self.counter, must=self._must, query=self.query)

    def _condensed(self, room: int) -> str:
        reference = self._reference()
        room -= self.counter.count(reference) + 1 if reference else 0
        if room < 1:
            return ""
        body = self._method(room)
        return f"{body}\n{reference}" if reference and body else body

    def _reference(self) -> str:
        return reference_to(self.name, self.content_type)

    def _completed(self, body: str) -> str:
        """A body with the critical facts that it lacks, as far as they fit."""
        lost = absent(self.ledger.critical, self.ledger, self.source, body) if self.ledger.critical else ()
        return restored(body, lost, self.source.text, self.target, self.counter) if lost else body

    def _with_important(self, body: str) -> str:
        """A body with the important values it lacks, in a little less room; as it is where they are too many."""
        if (
            self.query
            or self.content_type is ContentType.PAGE_DOC
            or is_code(self.text)
            or has_sections(self.text)
            or is_tool_shaped(self.text)
        ):
            return body
        lost = self._lost_values(body)
        if not lost:
            return body
        alone = restored("", lost, self.source.text, int(_RESTORED * self.target), self.counter)
        if absent(lost, self.ledger, self.source, alone):
            return body
        for more in _MORE:
            room = int(more * (self.counter.count(alone) + _MARKS * (alone.count("\n") + 1)))
            shorter = self._condensed(self.target - room)
            again = restored(self._completed(shorter), self._lost_values(shorter), self.source.text, self.target, self.counter)
            if len(still := self._lost_values(again)) < len(lost):
                body, lost = again, still
        return body

    def _lost_values(self, body: str) -> tuple[Fact, ...]:
        values = [f for f in self.ledger.facts if f.rank is not Rank.DETAIL and f.kind not in LINES]
        return absent(values, self.ledger, self.source, body)

    def _result(self, original_tokens: int, best: "_Tried") -> Compressed:
        if lost := best.verification.lost_critical:
            shown = "; ".join(f.text for f in lost[:5])
            return self._halted(
                original_tokens, f"{len(lost)} of {len(self.ledger.critical)} critical facts do not fit in {self.target} tokens: {shown}"
            )
        if not best.text:
            return self._halted(original_tokens, f"no sentence, line or value can stand for the text in {self.target} tokens")
        if not best.check.ok:
            return self._halted(original_tokens, "; ".join(best.check.reasons))
        tokens = self.counter.count(best.text)
        return Compressed(
            best.text, tokens, original_tokens, None, self.source.text, self.content_type, self.name, self.ledger, best.verification
        )

    def _halted(self, original_tokens: int, reason: str) -> Compressed:
        return Compressed(
            None,
            0,
            original_tokens,
            f"compress: {self.name or self.content_type.value}: {reason}",
            self.source.text,
            self.content_type,
            self.name,
            self.ledger,
        )


@dataclass(frozen=True, slots=True)
class _Tried:
    """A candidate with what was found about it."""

    text: str
    verification: Verification
    check: SummaryCheck

    @property
    def is_sound(self) -> bool:
        return self.check.ok and not self.verification.lost_critical

    @property
    def loss(self) -> tuple[int, bool, int, int]:
        found = self.verification
        return len(found.lost_critical), not self.check.ok, len(found.of(Outcome.MUTATED, Outcome.INVENTED)), len(found.lost)
