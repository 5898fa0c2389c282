"""Which addresses are visited, and why: by the words that they share with the question."""

from collections.abc import Sequence

from pandora_dagster.contracts.web.research_decisions import ChosenNumber
from pandora_dagster.contracts.web.research_lines import HitLine, LinkLine, PageLine
from pandora_dagster.research.addresses import names_host, words_of
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.research.asked_question import AskedQuestion, share, terms_of

_MIN_LINK_SCORE = 0.5
_MIN_SHARE_OF_BEST = 0.5
"""Hits that match less than this share of the best one are not visited."""
_MAX_SCORE = 1.3


def choose_hits(question: AskedQuestion, hits: Sequence[HitLine]) -> list[ChosenNumber]:
    """The hits by the share of the question's words that title, snippet and address have, best first."""
    chosen: list[ChosenNumber] = []
    for place, hit in enumerate(hits):
        held = terms_of(f"{hit.title} {hit.snippet} {words_of(hit.url)}")
        names, matter = share(question.name_terms, held), share(question.matter_terms, held)
        host = any(names_host(name, hit.url) for name in question.names)
        score = 0.6 * names + 0.3 * matter + 0.3 * host + 0.1 / (1 + place)
        reasons = [f"{names:.0%} {TEMPLATES['of_names']}"] if question.name_terms else []
        reasons += [f"{matter:.0%} {TEMPLATES['of_words']}"] if question.matter_terms else []
        because = ", ".join([*reasons, *([TEMPLATES["on_named_site"]] if host else [])])
        chosen.append(ChosenNumber(number=hit.number, worth=round(score / _MAX_SCORE, 3), because=because))
    chosen.sort(key=lambda choice: -choice.worth)
    return [choice for choice in chosen if choice.worth >= _MIN_SHARE_OF_BEST * chosen[0].worth]


def choose_links(question: AskedQuestion, page: PageLine, links: Sequence[LinkLine]) -> list[ChosenNumber]:
    """Links of a page whose own words are the question's; a page of a named site may lead to the page that answers."""
    if not any(names_host(name, page.url) for name in question.names):
        return []
    chosen: list[ChosenNumber] = []
    hosts = frozenset(term for name in question.names if names_host(name, page.url) for term in terms_of(name))
    wanted = (question.name_terms | question.matter_terms) - hosts
    for link in links:
        score = share(wanted, terms_of(words_of(link.url))) if wanted else 0.0
        if score >= _MIN_LINK_SCORE:
            chosen.append(
                ChosenNumber(number=link.number, worth=round(score / _MAX_SCORE, 3), because=f"{score:.0%} {TEMPLATES['of_words']}")
            )
    return chosen
