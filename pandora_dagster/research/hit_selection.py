"""Which addresses are visited, and why."""

from collections.abc import Iterable

from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.contracts.web.research_run import ChosenAddress
from pandora_dagster.contracts.web.search import SearchHit
from pandora_dagster.research.addresses import names_host, page_key, words_of
from pandora_dagster.research.asked_question import AskedQuestion, share, terms_of

_MIN_LINK_SCORE = 0.5


def choose_hits(question: AskedQuestion, hits: Iterable[SearchHit]) -> list[ChosenAddress]:
    """The hits by the share of the question's words that title, snippet and address have, best first; an address once."""
    chosen: dict[str, ChosenAddress] = {}
    for place, hit in enumerate(hits):
        held = terms_of(f"{hit.title} {hit.snippet} {words_of(hit.url)}")
        names, matter = share(question.name_terms, held), share(question.matter_terms, held)
        host = any(names_host(name, hit.url) for name in question.names)
        score = 0.6 * names + 0.3 * matter + 0.3 * host + 0.1 / (1 + place)
        because = f"{names:.0%} of the names and {matter:.0%} of the other words" + (", on a named site" if host else "")
        address = ChosenAddress(url=hit.url, title=hit.title, score=round(score, 3), because=because)
        key = page_key(hit.url)
        if key not in chosen or chosen[key].score < address.score:
            chosen[key] = address
    return sorted(chosen.values(), key=lambda address: -address.score)


def choose_links(question: AskedQuestion, page: PageDoc) -> list[ChosenAddress]:
    """Links of a page whose own words are the question's; a page of a named site may lead to the page that answers."""
    if not any(names_host(name, page.final_url) for name in question.names):
        return []
    chosen: list[ChosenAddress] = []
    hosts = frozenset(term for name in question.names if names_host(name, page.final_url) for term in terms_of(name))
    wanted = (question.name_terms | question.matter_terms) - hosts
    for link in page.links:
        score = share(wanted, terms_of(words_of(link))) if wanted else 0.0
        if score >= _MIN_LINK_SCORE:
            chosen.append(ChosenAddress(url=link, score=round(score, 3), because=f"linked from {page.final_url}"))
    return chosen
