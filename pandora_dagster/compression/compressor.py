"""The compression of a text, with a verdict for every fact of it. Pure: no model, no file, no clock.

Order: within budget, nothing changes; else the method of the content condenses, the ledger judges, what is missing is put
back within the target; where a critical fact can not be kept, the result says so and holds no text (a HALT).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

from pandora_dagster.compression.condense.fact_restoration import restore_facts
from pandora_dagster.compression.condense.methods import Method, has_sections, is_tool_shaped, method
from pandora_dagster.compression.content_detection import content_type_of, detect_content_type
from pandora_dagster.compression.facts.fact_types import LINES, Fact, FactKind, Ledger, Rank, Verdict
from pandora_dagster.compression.judge.candidate_trial import Trial
from pandora_dagster.compression.judge.grounding import REFERENCE, SourceIndex
from pandora_dagster.compression.judge.ledger import build_ledger
from pandora_dagster.compression.judge.summary_check import SummaryCheck, check_summary, without_echoes
from pandora_dagster.compression.judge.unsupported_sentences import borne_out
from pandora_dagster.compression.judge.verification import Verification, absent, verify
from pandora_dagster.compression.read.omission_rules import Rules
from pandora_dagster.compression.read.text_blocks import is_code
from pandora_dagster.compression.words.long_words import without_long_words
from pandora_dagster.compression.words.normalization import standing_in
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import InputError

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
_TRIES, _FEW_TRIES, _LARGE, _HUGE, _WIDER = 8, 3, 20_000, 200_000, 1.12
"""How often a larger target is tried after a HALT, of a large text (in tokens) less often, of a huge one never, and by how
much larger than the one before."""
_RESTORED = 0.4
"""Important facts are put back where they need at most this share of the target."""


@dataclass(frozen=True)
class CompressedText:
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
    check: SummaryCheck | None = None
    """Whether the text is one; None where there is none, and where it came back unchanged."""
    _fits: Callable[[int], bool] | None = None
    """Whether a larger target would have worked."""
    _needed: int = 0
    """Tokens below which nothing has to be tried."""

    @cached_property
    def smallest_target(self) -> int:
        """Of a HALT: a target near the smallest that works, found by a few tries; 0 where none of them did."""
        if self._fits is None or self.original_tokens > _HUGE:
            return 0
        last, few = self.original_tokens, _FEW_TRIES if self.original_tokens > _LARGE else _TRIES
        fails, tried = self._needed - 1, self._needed
        for _ in range(few):
            if tried >= last or self._fits(tried):
                break
            fails, tried = tried, int(tried * _WIDER) + 2
        else:
            tried = last
        tried = min(tried, max(last, self._needed))
        if not self._fits(tried):
            return 0
        for _ in range(few // 2):
            middle = (fails + tried) // 2
            if fails < middle < tried:
                fails, tried = (fails, middle) if self._fits(middle) else (middle, tried)
        return tried

    @cached_property
    def advice(self) -> str | None:
        """Why there is no text, and with how many tokens there would be one; None where there is one."""
        return f"{self.halted}; with {self.smallest_target} tokens they fit" if self.halted and self.smallest_target else self.halted

    @cached_property
    def ledger(self) -> Ledger:
        """The facts of the first original."""
        if self._ledger is not None:
            return self._ledger
        return build_ledger(self._source, self._content_type or detect_content_type(self._name, self._source))

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


def reference_line(name: str, content_type: ContentType) -> str:
    """The line that leads to the whole of a stored tool result or turn, "" where its name is no path."""
    is_path = "/" in name or name.endswith((".md", ".json", ".txt"))
    return f"{REFERENCE}{name}" if content_type in _STORED and is_path else ""


def compress(request: CompressionRequest, counter: TokenMeasure, *, ledger: Ledger | None = None) -> CompressedText:
    """The text of `request` in at most `request.target` tokens, each fact judged (000 section 24, 001 whole).

    Nothing that bears on `request.query` in it: then all counts. Credentials are left out of what is condensed. Where the text is a
    compression already, the facts of `request.original` are judged: a critical one that the text has lost is put back, and a sentence
    that contradicts the original is left out. `ledger` is that original's, where it has been taken. Where `request.name` is a path,
    details of a tool result may rest on a reference to it. Raises InputError for a target under 1.
    """
    text, target = request.text, request.target
    if target < 1:
        raise InputError(f"compress: target_tokens: {target}: expected at least 1 token")
    tokens = counter.count(text)
    if tokens <= target and not request.is_repeated:
        return CompressedText(text, tokens, tokens, None, text, request.content_type, request.name, ledger)
    kind = content_type_of(request)
    clean = redact(text)
    source = SourceIndex(redact(request.original) if request.is_repeated else clean, is_redacted=True)
    facts = ledger or build_ledger(source, kind)
    if request.is_repeated:
        true = borne_out(clean, facts, source)
        if tokens <= target and true == clean:
            unchanged = CompressedText(text, tokens, tokens, None, request.original, kind, request.name, facts)
            if not unchanged.verification.lost_critical:
                return unchanged
        clean = true
    job = _Job(replace(request, text=clean, content_type=kind, query=request.query.strip()), source, counter, facts)
    made = job.run(tokens)
    if made.text is None and job.query:
        again = replace(job, request=replace(job.request, query="")).run(tokens)
        made = made if again.text is None else again
    if made.text is None:
        return replace(made, _fits=partial(_fits, replace(request, content_type=kind), counter, facts))
    return made


def _fits(request: CompressionRequest, counter: TokenMeasure, facts: Ledger, target: int) -> bool:
    return compress(replace(request, target=target), counter, ledger=facts).text is not None


@dataclass(frozen=True)
class _Job:
    request: CompressionRequest
    """With its content type and a text without credentials."""
    source: SourceIndex
    """What the ledger is of: the text itself in the first generation."""
    counter: TokenMeasure
    ledger: Ledger

    @property
    def text(self) -> str:
        return self.request.text

    @property
    def target(self) -> int:
        return self.request.target

    @property
    def query(self) -> str:
        return self.request.query

    @property
    def name(self) -> str:
        return self.request.name

    @cached_property
    def content_type(self) -> ContentType:
        return content_type_of(self.request)

    def run(self, original_tokens: int) -> CompressedText:
        if (needed := self._critical_tokens()) > self.target:
            return self._halted(original_tokens, f"critical facts alone need {needed} tokens, the target is {self.target}")
        best: Trial | None = None
        for candidate in self._candidates():
            tried = self._borne_out(self._tried(candidate))
            if best is None or tried.loss < best.loss:
                best = tried
            if tried.is_sound:
                break
        return self._result(original_tokens, best or self._tried(""))

    def _tried(self, text: str) -> Trial:
        judged = verify(self.ledger, self.source, text, reference=self._reference())
        return Trial(text, judged, check_summary(text, self.source.text, self.target, self.counter))

    def _borne_out(self, tried: Trial) -> Trial:
        """A candidate rid of what the original does not bear out, with the critical facts that went with it put back."""
        if not tried.changed:
            return tried
        true = borne_out(tried.text, self.ledger, self.source, reference=self._reference())
        again = self._tried(self._completed(true))
        return again if again.loss < tried.loss else tried

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
        return without_long_words(Rules(self.text, self.content_type).shorter, self.target)

    @cached_property
    def _method(self) -> Method:
        return method(self._shorter, self.content_type, self.counter, must=self._must, query=self.query)

    def _condensed(self, room: int) -> str:
        reference = self._reference()
        room -= self.counter.count(reference) + 1 if reference else 0
        if room < 1:
            return ""
        body = without_echoes(self._method(room), self.source.text)
        return f"{body}\n{reference}" if reference and body else body

    def _reference(self) -> str:
        return reference_line(self.name, self.content_type)

    def _completed(self, body: str) -> str:
        """A body with the critical facts that it lacks, as far as they fit."""
        lost = absent(self.ledger.critical, self.ledger, self.source, body) if self.ledger.critical else ()
        return restore_facts(body, lost, self.source.text, self.target, self.counter) if lost else body

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
        alone = restore_facts("", lost, self.source.text, int(_RESTORED * self.target), self.counter)
        if absent(lost, self.ledger, self.source, alone):
            return body
        for more in _MORE:
            room = int(more * (self.counter.count(alone) + _MARKS * (alone.count("\n") + 1)))
            shorter = self._condensed(self.target - room)
            again = restore_facts(self._completed(shorter), self._lost_values(shorter), self.source.text, self.target, self.counter)
            if len(still := self._lost_values(again)) < len(lost):
                body, lost = again, still
        return body

    def _lost_values(self, body: str) -> tuple[Fact, ...]:
        values = [f for f in self.ledger.facts if f.rank is not Rank.DETAIL and f.kind not in LINES]
        return absent(values, self.ledger, self.source, body)

    def _result(self, original_tokens: int, best: Trial) -> CompressedText:
        if lost := best.verification.lost_critical:
            shown = "; ".join(f.text for f in lost[:5])
            return self._halted(
                original_tokens, f"{len(lost)} of {len(self.ledger.critical)} critical facts do not fit in {self.target} tokens: {shown}"
            )
        if untrue := best.changed:
            shown = "; ".join(v.evidence or v.text for v in untrue[:5])
            return self._halted(original_tokens, f"the text says what its original does not bear out: {shown}")
        if not best.text:
            return self._halted(original_tokens, f"no sentence, line or value can stand for the text in {self.target} tokens")
        if best.keeps_nothing:
            total = best.verification.counts["total"]
            return self._halted(original_tokens, f"none of the {total} facts can stand in {self.target} tokens")
        if not best.check.ok:
            return self._halted(original_tokens, "; ".join(best.check.reasons))
        tokens = self.counter.count(best.text)
        return CompressedText(
            best.text,
            tokens,
            original_tokens,
            None,
            self.source.text,
            self.content_type,
            self.name,
            self.ledger,
            best.verification,
            best.check,
        )

    def _halted(self, original_tokens: int, reason: str) -> CompressedText:
        return CompressedText(
            None,
            0,
            original_tokens,
            f"compress: {self.name or self.content_type.value}: {reason}",
            self.source.text,
            self.content_type,
            self.name,
            self.ledger,
            _needed=max(self._critical_tokens(), self.target + 1),
        )
