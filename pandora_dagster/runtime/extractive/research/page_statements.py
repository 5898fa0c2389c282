"""What one page says about a question: statements about the named thing that hold what is asked, each with a verbatim quote."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.web.page_doc import PageType, ZoneKind
from pandora_dagster.contracts.web.research_lines import PageLine, UnitLine
from pandora_dagster.documents.webpages.fields.availability import written_availability
from pandora_dagster.language.requests.asked_values import AskedKind, FoundValue, has_asked_value, names_kind, values_of
from pandora_dagster.research.addresses import names_host, words_of
from pandora_dagster.runtime.extractive.research.asked_question import AskedQuestion, is_held, share, terms_of

_MIN_SHARE = {AskedKind.MONEY: 0.5, AskedKind.YES_NO: 0.7, AskedKind.TEXT: 0.6}
_MIN_SHARE_OF_VALUE = 0.5
"""The least share of what is asked that the statement itself, with its heading, must name."""
_OWN_PRICE = 0.3
_CLAUSE = re.compile(r"[,;:]\s")
_MIN_SHARE_OF_TITLE = 0.6
"""The least share of the question's words that the title of the page has whose date is asked."""
_NO_STATEMENTS = frozenset({ZoneKind.TITLE.value, ZoneKind.HEADER.value})
_ANSWER = re.compile(r"(?:yes|no|ja|nein|oui|non|sí|si)\b", re.IGNORECASE)


def least_share(kind: AskedKind) -> float:
    """The least share of the question's words about a thing that a statement has."""
    return _MIN_SHARE.get(kind, _MIN_SHARE_OF_VALUE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One unit of a page that answers, with how well it does."""

    unit: UnitLine
    value: str
    score: float
    """Share of the question's terms in the unit, its heading and its page, 0 to 1, with marks for form: at most `MAX_SCORE`."""


MAX_SCORE = 1.35


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads one page for one question."""

    question: AskedQuestion
    page: PageLine
    units: Sequence[UnitLine]

    @property
    def head(self) -> frozenset[str]:
        """What the page is about: its title and its address."""
        return terms_of(f"{self.page.title} {words_of(self.page.url)}")

    def missing_names(self, held: frozenset[str]) -> frozenset[str]:
        """Names of the question that neither `held` nor the page's host has."""
        hosts = frozenset(term for name in self.question.names if names_host(name, self.page.url) for term in terms_of(name))
        return frozenset(t for t in self.question.name_terms - hosts if not is_held(t, held))

    def is_on_topic(self, other_hosts: frozenset[str] = frozenset()) -> bool:
        """Whether the page itself is about the named thing. `other_hosts`: names of the question that are hosts of other pages."""
        return not self.missing_names(self.head) - other_hosts

    def statements(self, other_hosts: frozenset[str] = frozenset()) -> tuple[Statement, ...]:
        """The units that answer, best first."""
        if self.question.asks_twice or self.question.asks_way:
            return ()
        if asks_publication(self.question):
            return publication_statements(self)
        if self.question.kind is AskedKind.YES_NO and asks_availability(self.question):
            return availability_statements(self)
        return tuple(sorted(self._statements(other_hosts), key=lambda s: -s.score))

    def _statements(self, other_hosts: frozenset[str]) -> Iterator[Statement]:
        head, kind = self.head, self.question.kind
        if kind is AskedKind.YES_NO and self.page.page_type == PageType.FORUM:
            return  # one post says yes, the next one no: that needs a judgement
        on_topic = self.is_on_topic(other_hosts)
        for unit in self.units:
            if unit.zone in _NO_STATEMENTS or unit.text.endswith("?"):
                continue
            own = terms_of(f"{unit.text} {unit.under}")
            if kind is AskedKind.YES_NO and not _ANSWER.match(unit.text):
                continue
            if not self.question.superlatives <= own:
                continue
            if not on_topic and self.missing_names(own) - other_hosts:
                continue  # the page has a part of the names and the statement another: it is about something else
            score = self._score(unit, own, head, on_topic=on_topic)
            if score:
                yield from self._values(unit, score)

    def _score(self, unit: UnitLine, own: frozenset[str], head: frozenset[str], *, on_topic: bool) -> float:
        """How much of what is asked a statement names; 0 where it is too little."""
        question = self.question
        kind, matter = question.kind, question.matter_terms
        least = least_share(kind)
        in_own, in_all = share(matter, own), share(matter, own | head)
        names_what = has_asked_value(kind) and names_kind(f"{unit.text} {unit.under}", kind)
        if kind is AskedKind.MONEY:
            mark = self._price_mark(unit)
            if in_all < least and not self._is_own_price(unit, on_topic=on_topic):
                return 0.0
            if mark >= _OWN_PRICE and in_all < 1 and self._offers_others(unit):
                return 0.0  # a word that neither has may say which of the page's prices is asked: the large one, the one with a charger
            if mark < _OWN_PRICE and in_own < least:
                return 0.0  # an amount on the page, which is not its price: the statement itself must name what is asked
            score = 0.5 + 0.3 * in_all + 0.2 * in_own * bool(matter) + mark
        elif not matter:
            score = 0.7 + 0.2 * names_what if names_what else 0.0
        else:
            if in_own < least:
                return 0.0
            if kind in (AskedKind.TEXT, AskedKind.YES_NO) and len(matter & own) + len(question.name_terms & own) < 2:
                return 0.0
            score = 0.4 + 0.4 * in_own + 0.1 * in_all + 0.1 * names_what
        return score + 0.05 * share(question.name_terms, own)

    def _is_own_price(self, unit: UnitLine, *, on_topic: bool) -> bool:
        """Whether an amount is the asked price of the page's thing, where other words of the question cannot be expected on the page:
        they are in another language, or about the reduction."""
        is_excused = self.question.asks_previous_price or self.page.language not in ("", self.question.language)
        return on_topic and is_excused and self._price_mark(unit) >= _OWN_PRICE

    def _offers_others(self, unit: UnitLine) -> bool:
        """Whether a unit beside this one has another price of the page's thing: of another size or form."""
        known = {f"{float(price):.6g}" for price in (self.page.price, self.page.old_price) if price}
        beside = (other for other in self.units if other.zone == unit.zone and other.number != unit.number)
        amounts = ({v.key.split(" ")[0] for v in values_of(AskedKind.MONEY, _cell(other), self.page.language)} for other in beside)
        return any(found and not found & known for found in amounts)

    def _price_mark(self, unit: UnitLine) -> float:
        """The page's own price, as its fields have it, before other amounts."""
        page = self.page
        wanted, other = (page.old_price, page.price) if self.question.asks_previous_price else (page.price, page.old_price)
        numbers = {v.key.split(" ")[0] for v in values_of(AskedKind.MONEY, _cell(unit), self.page.language)}
        if wanted and f"{float(wanted):.6g}" in numbers:
            return _OWN_PRICE
        if other and f"{float(other):.6g}" in numbers:
            return -0.3
        if self.question.asks_previous_price:
            return -0.5
        return 0.05 * (unit.zone == ZoneKind.PRICING)

    def _values(self, unit: UnitLine, score: float) -> Iterator[Statement]:
        kind = self.question.kind
        if not has_asked_value(kind):
            yield Statement(unit, self._clause(unit), score)
            return
        held = [v for v in values_of(kind, _cell(unit), self.page.language) if not self._is_asked(unit, v)]
        if kind is AskedKind.MONEY and len(held) > 1:
            held = self._nearest(held)
        yield from (Statement(unit, _cell(unit)[v.start : v.end].strip(), score) for v in held[:1])

    def _clause(self, unit: UnitLine) -> str:
        """The part of a statement up to a comma or semicolon that has most of the question's words."""
        parts = [part.strip() for part in _CLAUSE.split(_cell(unit)) if part.strip()]
        return max(parts, key=lambda part: share(self.question.terms, terms_of(part)), default=_cell(unit))

    def _is_asked(self, unit: UnitLine, value: FoundValue) -> bool:
        """Whether a value is in the question already: it is a condition, not the answer."""
        return _cell(unit)[value.start : value.end].strip().lower() in self.question.text.lower()

    def _nearest(self, held: list[FoundValue]) -> list[FoundValue]:
        """Of several amounts the one that the page's fields have, else the first."""
        wanted = self.page.old_price if self.question.asks_previous_price else self.page.price
        return [v for v in held if wanted and v.key.split(" ")[0] == f"{float(wanted):.6g}"] or held


def availability_statements(reader: PageReader) -> tuple[Statement, ...]:
    """What a page about a product says of its availability."""
    state = reader.page.availability
    if reader.missing_names(reader.head) or not state:
        return ()
    stating = (unit for unit in reader.units if unit.zone != ZoneKind.HEADER)
    return tuple(Statement(unit, state.replace("_", " "), 0.9) for unit in stating if written_availability(unit.text) == state)


def publication_statements(reader: PageReader) -> tuple[Statement, ...]:
    """The page's own date, where the page is what is asked about and shows the date."""
    date, wanted = reader.page.date, reader.question.matter_terms - _publishing_terms()
    if not date or reader.missing_names(reader.head) or share(wanted, reader.head) < _MIN_SHARE_OF_TITLE:
        return ()
    for unit in reader.units:
        for value in values_of(AskedKind.DATE, unit.text, reader.page.language):
            if value.key[5:] == date[5:10] and value.key[:4] in (date[:4], "0000"):
                return (Statement(unit, date[:10], 0.9),)
    return ()


def _publishing_terms() -> frozenset[str]:
    return terms_of("publish published publication appear appeared written veröffentlicht erschienen")


def asks_publication(question: AskedQuestion) -> bool:
    return question.kind is AskedKind.DATE and bool(question.matter_terms & _publishing_terms())


def asks_availability(question: AskedQuestion) -> bool:
    return bool(question.matter_terms & terms_of("stock available availability lieferbar verfügbar vorrätig lager"))


def _cell(unit: UnitLine) -> str:
    """The part of a unit that may have the asked value."""
    return unit.cell or unit.text
