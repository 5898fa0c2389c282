"""Roles about one page: what its form decides. What needs a judgement leaves the page as code has read it."""

import re

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.web.page_doc import PageType
from pandora_dagster.contracts.web.prompt_lines import read_lines
from pandora_dagster.contracts.web.research_decisions import ContentZones, NextPage, PageKind, PageRelevance, ReadingJudgement
from pandora_dagster.contracts.web.research_lines import LinkLine, PageLine
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.output_budget import Draft

_NUMBER = re.compile(r"\d+")


def judge_relevance(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Relevant: the page is read, since other words may mean the same."""
    return PageRelevance(reason=TEMPLATES["no_meaning"], relevant=True)


def name_type(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The type that the form of the page has."""
    pages = read_lines(pack.document("page"), PageLine)
    return PageKind(reason=TEMPLATES["by_form"], page_type=PageType(pages[0].page_type) if pages else PageType.INFO)


def keep_zones(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """No zone is added to those of which the sources agree."""
    return ContentZones(reason=TEMPLATES["no_meaning"], zones=())


def accept_reading(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Accepted: a second reading by the same words would find the same."""
    return ReadingJudgement(reason=TEMPLATES["no_meaning"], decision="accept")


def find_next_page(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The link whose last number is one more than that of the page; a page without a number is the first one."""
    pages = read_lines(pack.document("page"), PageLine)
    links = {_place(link.url): link.number for link in reversed(read_lines(pack.document("links"), LinkLine))}
    return NextPage(reason=TEMPLATES["by_number"], link=links.get((_place(pages[0].url) or 1) + 1, 0) if pages else 0)


def _place(url: str) -> int:
    """The last number of an address of at most three digits; 0 where it has none."""
    numbers = _NUMBER.findall(url.partition("://")[2].partition("/")[2])
    return int(numbers[-1]) if numbers and len(numbers[-1]) <= 3 else 0
