"""A scripted model for `benchmarks.research`: it knows the truth of the web, and finds it in what it is shown.

It decides by numbers of hits, links, units and claims, as every model does, and visits pages that lie before others. What it misses, the
program did not show it or did not let it say.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.web.prompt_lines import read_lines
from pandora_dagster.contracts.web.research_lines import ClaimLine, HitLine, LinkLine, PageLine, UnitLine
from pandora_dagster.research.addresses import page_key
from pandora_dagster.research.recipe_calls import READERS
from tests.research.research_runs import RoleRuntime

_OTHERS = 4
"""Hits that it visits beside those which answer or lie."""


def scripted_model(truth: Mapping[str, Any]) -> RoleRuntime:
    """The model over the questions of a `truth.json`."""
    questions = {" ".join(question["question"].split()): question for question in truth["questions"]}

    def asked(pack: PromptPack) -> Mapping[str, Any]:
        return questions[pack.query]

    def extract(pack: PromptPack) -> object:
        (page,) = read_lines(pack.document("page"), PageLine)
        units = read_lines(pack.document("units"), UnitLine)
        claims = list(_true_claims(asked(pack), page, units))
        return {"about_subject": bool(claims), "claims": claims}

    def select(pack: PromptPack) -> object:
        wanted, lying = _places(asked(pack))
        hits = read_lines(pack.document("hits"), HitLine)
        worth = {hit.number: 0.9 if page_key(hit.url) in wanted else 0.8 for hit in hits if page_key(hit.url) in wanted | lying}
        others = [hit.number for hit in hits if hit.number not in worth][:_OTHERS]
        return _chosen({**worth, **dict.fromkeys(others, 0.3)})

    def follow(pack: PromptPack) -> object:
        wanted, _ = _places(asked(pack))
        return _chosen({link.number: 0.9 for link in read_lines(pack.document("links"), LinkLine) if page_key(link.url) in wanted})

    def verify(pack: PromptPack) -> object:
        numbers = [claim.number for claim in read_lines(pack.document("claims"), ClaimLine)]
        return {"verdicts": [{"number": number, "reason": "", "verdict": "supported"} for number in numbers]}

    def merge(pack: PromptPack) -> object:
        values: dict[str, list[int]] = {}
        for claim in read_lines(pack.document("claims"), ClaimLine):
            values.setdefault(claim.value, []).append(claim.number)
        return {"answers": [{"claims": numbers} for numbers in values.values()], "reason": ""}

    def disagree(pack: PromptPack) -> object:
        numbers = [claim.number for claim in read_lines(pack.document("claims"), ClaimLine)]
        return {"conflicts": [{"reason": "", "claims": numbers}] if asked(pack)["outcome"] == "contradiction told" else []}

    def for_person(pack: PromptPack) -> object:
        pages = [page.number for page in read_lines(pack.document("pages"), PageLine)]
        return {"reason": "", "pages": pages if asked(pack)["outcome"] == "needs a person" else []}

    script: dict[str, Callable[[PromptPack], Any]] = dict.fromkeys((recipe.partition("/")[2] for recipe in READERS), extract)
    script |= {"result_selector": select, "link_ranker": follow, "claim_verifier": verify, "claim_merger": merge}
    return RoleRuntime(script={**script, "contradiction_finder": disagree, "blocker_classifier": for_person})


def _places(question: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """The pages that answer a question, and those that must not be used for it."""
    wanted = {page_key(url) for claim in question["claims"] for url in claim["urls"]}
    return wanted, {page_key(url) for url in question["must_not_use"]}


def _chosen(worth: Mapping[int, float]) -> object:
    return {"visit": [{"number": number, "worth": share, "because": "its title"} for number, share in worth.items()]}


def _true_claims(question: Mapping[str, Any], page: PageLine, units: Sequence[UnitLine]) -> Iterator[dict[str, Any]]:
    """For each claim of the truth that the page carries, the first unit with its quote, and the value as the unit writes it."""
    for claim in question["claims"]:
        places = {page_key(url): url for url in claim["urls"]}
        if page_key(page.url) not in places:
            continue
        quote = squeezed(claim["quotes"].get(places[page_key(page.url)], ""))
        spellings = [spelling for given in (claim["value"], *claim["alt"]) for spelling in (given, given.replace(".", ","))]
        same = [unit for unit in units if quote and (squeezed(unit.text) in quote or quote in squeezed(unit.text))]
        written = ((unit, spelling) for unit in same for spelling in spellings if spelling.lower() in unit.text.lower())
        if found := next(written, (same[0], same[0].cell or same[0].text) if same else None):
            yield {"unit": found[0].number, "value": found[1], "need": 1, "worth": 0.9}


def squeezed(text: str) -> str:
    return "".join(text.split()).lower()
