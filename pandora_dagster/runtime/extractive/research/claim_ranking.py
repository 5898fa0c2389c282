"""How claims add up: the best of the best source, those of others that answer as well, and whether they differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date as day

from pandora_dagster.contracts.web.page_doc import PageType
from pandora_dagster.contracts.web.research_lines import ClaimLine, SourceLine
from pandora_dagster.language.requests.asked_values import AskedKind, has_asked_value, values_of
from pandora_dagster.research.addresses import host_of, names_host
from pandora_dagster.runtime.extractive.research.asked_question import AskedQuestion
from pandora_dagster.runtime.extractive.research.page_statements import MAX_SCORE

_SAME_WORTH = 0.08 / MAX_SCORE
"""Claims whose worth differs by less answer equally well."""
_STALE_DAYS = 300
_ABOUT_PRODUCT = frozenset({PageType.PRODUCT.value, PageType.SPEC.value})


@dataclass(frozen=True, slots=True)
class RankedClaim:
    """A claim with the precedence of its page: whoever asks for a place or the maker is answered from there."""

    line: ClaimLine
    precedence: tuple[int, ...]
    key: str
    """Under which equal values of two pages meet."""

    @property
    def is_of_named_site(self) -> bool:
        return bool(self.precedence[0])

    @property
    def host(self) -> str:
        return host_of(self.line.url)


def rank_claims(question: AskedQuestion, claims: Sequence[ClaimLine], sources: Sequence[SourceLine]) -> list[RankedClaim]:
    """The claims, best first."""
    ranked: list[RankedClaim] = []
    for line in claims:
        precedence = (
            int(any(names_host(name, line.url) for name in question.sites)),
            int(question.asks_maker and _is_maker(host_of(line.url), sources)),
            int(not line.outdated),
            int(line.about_subject),
            int(question.kind is AskedKind.MONEY and line.page_type in _ABOUT_PRODUCT),
        )
        ranked.append(RankedClaim(line, precedence, _key(question, line)))
    return sorted(ranked, key=lambda claim: (*claim.precedence, claim.line.worth), reverse=True)


def outdated_claims(claims: Sequence[ClaimLine], sources: Sequence[SourceLine]) -> tuple[int, ...]:
    """The numbers of claims whose page is much older than the newest page that was read."""
    newest = max((source.date for source in sources if source.read), default="")
    return tuple(line.number for line in claims if _is_stale(line, newest))


def best_claims(question: AskedQuestion, ranked: Sequence[RankedClaim]) -> list[RankedClaim]:
    """The best claim, and those that answer as well: one for each value and source."""
    kept = _as_good(ranked)
    named = {claim.host for claim in ranked if claim.is_of_named_site}
    if question.kind is AskedKind.MONEY and len(named) > 1:  # asked of several sellers: each answers for itself
        kept = [claim for claim in ranked if claim.is_of_named_site and claim.line.about_subject]
    if question.kind is AskedKind.MONEY and not _asks_for_list(question):
        sources: dict[str, RankedClaim] = {}
        for claim in kept:
            sources.setdefault(claim.host, claim)
        return list(sources.values())
    if _asks_for_list(question):
        return [claim for claim in kept if claim.line.url == kept[0].line.url]
    if not has_asked_value(question.kind):
        return kept[:1]
    values: dict[str, RankedClaim] = {}
    answering = set[str]()
    for claim in kept:
        if claim.host not in answering:
            values.setdefault(claim.key, claim)
        answering.add(claim.host)
    return list(values.values())


def contradict(question: AskedQuestion, answers: Sequence[ClaimLine]) -> bool:
    """Whether two sources give different values of one thing; prices of two sellers are two things, and so are the values of one page."""
    if question.kind is AskedKind.MONEY or not has_asked_value(question.kind):
        return False
    return len({_key(question, line) for line in answers}) > 1 and len({host_of(line.url) for line in answers}) > 1


def _key(question: AskedQuestion, line: ClaimLine) -> str:
    if not has_asked_value(question.kind):
        return line.value if question.kind is AskedKind.YES_NO else ""
    return next((value.key for value in values_of(question.kind, line.value, line.language)), line.value)


def _as_good(ranked: Sequence[RankedClaim]) -> list[RankedClaim]:
    top = ranked[0]
    return [claim for claim in ranked if claim.precedence == top.precedence and claim.line.worth >= top.line.worth - _SAME_WORTH]


def _asks_for_list(question: AskedQuestion) -> bool:
    first = question.text.split(" ", 1)[0].lower()
    return question.kind is AskedKind.MONEY and first in ("which", "welche", "quels", "quelles")


def _is_maker(host: str, sources: Sequence[SourceLine]) -> bool:
    """Whether the name of a site is in titles of other sites: a maker's name is."""
    name = host.split(".")[0].replace("-", "")
    return any(source.read and source.host != host and name in source.title.lower().replace(" ", "") for source in sources)


def _is_stale(line: ClaimLine, newest: str) -> bool:
    """Whether a dated page is much older than the newest one."""
    if not line.date or not newest:
        return False
    try:
        return (day.fromisoformat(newest[:10]) - day.fromisoformat(line.date[:10])).days > _STALE_DAYS
    except ValueError:
        return False
