"""What one page says about a question: statements about the named thing that hold what is asked, each with a verbatim quote."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pandora_dagster.contracts.web.page_doc import OUTSIDE_KINDS, PageDoc, PageType, ZoneKind
from pandora_dagster.documents.webpages.fields.availability import written_availability
from pandora_dagster.language.requests.asked_values import AskedKind, FoundValue, has_asked_value, names_kind, values_of
from pandora_dagster.language.requests.orders_to_models import addresses_model
from pandora_dagster.research.addresses import host_of, names_host, words_of
from pandora_dagster.research.asked_question import AskedQuestion, is_held, share, terms_of
from pandora_dagster.research.page_units import PageUnit, page_units

_MIN_SHARE = {AskedKind.MONEY: 0.5, AskedKind.YES_NO: 0.7, AskedKind.TEXT: 0.6}
_MIN_SHARE_OF_VALUE = 0.5
"""The least share of what is asked that the statement itself, with its heading, must name."""
_OWN_PRICE = 0.3
_CLAUSE = re.compile(r"[,;:]\s")
_MIN_SHARE_OF_TITLE = 0.6
"""The least share of the question's words that the title of the page has whose date is asked."""
_ANSWER = re.compile(r"(?:yes|no|ja|nein|oui|non|sí|si)\b", re.IGNORECASE)
_UNREADABLE = frozenset({PageType.LOGIN, PageType.CAPTCHA, PageType.ERROR, PageType.CONSENT})


@dataclass(frozen=True, slots=True)
class Evidence:
    """One statement of one page that answers, with how well it does."""

    page: PageDoc
    unit: PageUnit
    value: str
    key: str
    """Under which equal values of two pages meet."""
    score: float
    """Share of the question's terms in the statement, its heading and its page, 0 to 1, with small marks for form."""
    is_on_topic: bool
    """The page itself is about the named thing."""


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads one page for one question."""

    question: AskedQuestion
    page: PageDoc

    @property
    def head(self) -> frozenset[str]:
        """What the page is about: its title and its address."""
        return terms_of(f"{self.page.title} {words_of(self.page.final_url)}")

    def missing_names(self, held: frozenset[str]) -> frozenset[str]:
        """Names of the question that neither `held` nor the page's host has."""
        hosts = frozenset(term for name in self.question.names if names_host(name, self.page.final_url) for term in terms_of(name))
        return frozenset(t for t in self.question.name_terms - hosts if not is_held(t, held))

    def evidence(self, other_hosts: frozenset[str] = frozenset()) -> tuple[Evidence, ...]:
        """The statements that answer, best first. `other_hosts`: names of the question that are hosts of other pages."""
        if self.page.page_type in _UNREADABLE or self.question.asks_twice:
            return ()
        found = sorted(self._evidence(other_hosts), key=lambda e: -e.score)
        return tuple(found)

    def _evidence(self, other_hosts: frozenset[str]) -> Iterator[Evidence]:
        head, kind = self.head, self.question.kind
        if kind is AskedKind.YES_NO and self.page.page_type is PageType.FORUM:
            return  # one post says yes, the next one no: that needs a judgement
        on_topic = not self.missing_names(head) - other_hosts
        for unit in page_units(self.page):
            if unit.zone.kind is ZoneKind.TITLE or unit.quote.endswith("?") or addresses_model(unit.quote):
                continue
            own = terms_of(f"{unit.quote} {unit.context}")
            if kind is AskedKind.YES_NO and not _ANSWER.match(unit.quote):
                continue
            if not self.question.superlatives <= own:
                continue
            if not on_topic and self.missing_names(own) - other_hosts:
                continue  # the page has a part of the names and the statement another: it is about something else
            score = self._score(unit, own, head, on_topic=on_topic)
            if score:
                yield from self._values(unit, score, is_on_topic=on_topic)

    def _score(self, unit: PageUnit, own: frozenset[str], head: frozenset[str], *, on_topic: bool) -> float:
        """How much of what is asked a statement names; 0 where it is too little."""
        question = self.question
        kind, matter = question.kind, question.matter_terms
        least = _MIN_SHARE.get(kind, _MIN_SHARE_OF_VALUE)
        in_own, in_all = share(matter, own), share(matter, own | head)
        names_what = has_asked_value(kind) and names_kind(f"{unit.quote} {unit.context}", kind)
        if kind is AskedKind.MONEY:
            if in_all < least and not self._is_own_price(unit, on_topic=on_topic):
                return 0.0
            score = 0.5 + 0.3 * in_all + 0.2 * in_own * bool(matter) + self._price_mark(unit)
        elif not matter:
            score = 0.7 + 0.2 * names_what if names_what else 0.0
        else:
            if in_own < least and not (names_what and in_all >= least and has_asked_value(kind)):
                return 0.0
            if kind in (AskedKind.TEXT, AskedKind.YES_NO) and len(matter & own) + len(question.name_terms & own) < 2:
                return 0.0
            score = 0.4 + 0.4 * in_own + 0.1 * in_all + 0.1 * names_what
        return score + 0.05 * share(question.name_terms, own)

    def _is_own_price(self, unit: PageUnit, *, on_topic: bool) -> bool:
        """Whether an amount is the asked price of the page's thing, where other words of the question cannot be expected on the page:
        they are in another language, or about the reduction."""
        is_excused = self.question.asks_previous_price or self.page.language not in ("", self.question.language)
        return on_topic and is_excused and self._price_mark(unit) >= _OWN_PRICE

    def _price_mark(self, unit: PageUnit) -> float:
        """The page's own price, as its fields have it, before other amounts."""
        fields = self.page.extracted_data
        wanted, other = (fields.old_price, fields.price) if self.question.asks_previous_price else (fields.price, fields.old_price)
        numbers = {v.key.split(" ")[0] for v in values_of(AskedKind.MONEY, unit.values, self.page.language)}
        if wanted and f"{float(wanted):.6g}" in numbers:
            return _OWN_PRICE
        if other and f"{float(other):.6g}" in numbers:
            return -0.3
        if self.question.asks_previous_price:
            return -0.5
        return 0.05 * (unit.zone.kind is ZoneKind.PRICING)

    def _values(self, unit: PageUnit, score: float, *, is_on_topic: bool) -> Iterator[Evidence]:
        kind = self.question.kind
        if not has_asked_value(kind):
            yield Evidence(self.page, unit, self._clause(unit), "", score, is_on_topic)
            return
        held = [v for v in values_of(kind, unit.values, self.page.language) if not self._is_asked(unit, v)]
        if kind is AskedKind.MONEY and len(held) > 1:
            held = self._nearest(unit, held)
        yield from (Evidence(self.page, unit, unit.values[v.start : v.end].strip(), v.key, score, is_on_topic) for v in held[:1])

    def _clause(self, unit: PageUnit) -> str:
        """The part of a statement up to a comma or semicolon that has most of the question's words."""
        parts = [part.strip() for part in _CLAUSE.split(unit.values) if part.strip()]
        return max(parts, key=lambda part: share(self.question.terms, terms_of(part)), default=unit.values)

    def _is_asked(self, unit: PageUnit, value: FoundValue) -> bool:
        """Whether a value is in the question already: it is a condition, not the answer."""
        return unit.values[value.start : value.end].strip().lower() in self.question.text.lower()

    def _nearest(self, unit: PageUnit, held: list[FoundValue]) -> list[FoundValue]:
        """Of several amounts the one that the page's fields have, else the first."""
        fields = self.page.extracted_data
        wanted = fields.old_price if self.question.asks_previous_price else fields.price
        return [v for v in held if wanted and v.key.split(" ")[0] == f"{float(wanted):.6g}"] or held


def availability_evidence(question: AskedQuestion, page: PageDoc) -> tuple[Evidence, ...]:
    """What a page about a product says of its availability."""
    reader = PageReader(question, page)
    if page.page_type in _UNREADABLE or reader.missing_names(reader.head) or not page.extracted_data.availability:
        return ()
    state = page.extracted_data.availability
    return tuple(
        Evidence(page, unit, state.replace("_", " "), state, 0.9, True)
        for unit in page_units(page)
        if written_availability(unit.quote) == state and not addresses_model(unit.quote)
    )


def publication_evidence(question: AskedQuestion, page: PageDoc) -> tuple[Evidence, ...]:
    """The page's own date, where the page is what is asked about and shows the date."""
    reader = PageReader(question, page)
    date = page.extracted_data.date
    if (
        not date
        or reader.missing_names(reader.head)
        or share(question.matter_terms - _publishing_terms(), reader.head) < _MIN_SHARE_OF_TITLE
    ):
        return ()
    found: list[Evidence] = []
    for zone in page.zones:
        if zone.visible and (zone.kind not in OUTSIDE_KINDS or zone.kind is ZoneKind.HEADER):
            for line in zone.text.split("\n"):
                for value in values_of(AskedKind.DATE, line, page.language):
                    if value.key[5:] == date[5:10] and value.key[:4] in (date[:4], "0000"):
                        unit = PageUnit(line.lstrip("#- "), line, "", zone)
                        found.append(Evidence(page, unit, date[:10], date[:10], 0.9, True))
    return tuple(found[:1])


def _publishing_terms() -> frozenset[str]:
    return terms_of("publish published publication appear appeared written veröffentlicht erschienen")


def asks_publication(question: AskedQuestion) -> bool:
    return question.kind is AskedKind.DATE and bool(question.matter_terms & _publishing_terms())


def is_hostile(page: PageDoc) -> bool:
    """Whether a page has visible text that addresses a model."""
    return any(zone.visible and addresses_model(zone.text) for zone in page.zones)


def is_for_a_person(question: AskedQuestion, page: PageDoc) -> bool:
    """Whether a page that may answer wants a login or a captcha."""
    return page.page_type in (PageType.LOGIN, PageType.CAPTCHA) and any(names_host(name, page.final_url) for name in question.names)


def source_of(page: PageDoc) -> str:
    return host_of(page.final_url)
