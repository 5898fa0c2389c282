"""Role `compressor`: the units that a compression keeps of a text, within the tokens that the call may write."""

import json
import re

from pandora_dagster.compression.compressor import compress
from pandora_dagster.compression.numbered_units import read_numbered
from pandora_dagster.compression.salience.salience import reading_salience
from pandora_dagster.compression.salience.text_reading import tokenized
from pandora_dagster.compression.selection.coverage import Candidates, CoverageChoice
from pandora_dagster.compression.selection.passage_relevance import relevance
from pandora_dagster.compression.selection.term_weights import weighted_terms
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.language.detection import language_of
from pandora_dagster.runtime.extractive.output_budget import Draft

_DOCUMENT_SUFFIX = "_to_compress"


def shorten(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Specification 000, section 23: whole units, as `pandora compress` chooses them."""
    text = next((p.text for p in pack.parts if p.kind == "document" and p.name.endswith(_DOCUMENT_SUFFIX)), "")
    if "keep" in (pack.output_schema or {}).get("properties", {}):
        return _choose_numbers(text, pack, counter)
    return condense(text, pack.max_output_tokens, counter, about=pack.query)


def condense(text: str, limit: int, counter: TokenMeasure, *, about: str = "") -> str:
    """`text` in at most `limit` tokens; "" where no unit of it fits."""
    return compress(CompressionRequest(text, query=about, target=limit), counter).text or ""


def target_tokens(pack: PromptPack, name: str, default: int) -> int:
    """The number that the call gives in its variable `name`."""
    shown = next((p.text for p in pack.parts if p.kind == "variables"), "")
    found = re.search(rf"^{name}: (\d{{1,6}})$", shown, re.MULTILINE)
    return int(found[1]) if found else default


def _choose_numbers(text: str, pack: PromptPack, counter: TokenMeasure) -> str:
    """Numbers of the units that cover most within the tokens that the call asks for, by the tokens that they show; at least one."""
    shown = list(read_numbered(text))
    units = tuple(Unit(n, UnitKind.SENTENCE, one.text, 0, 0, (), 0, "", 0, 0) for n, one in enumerate(shown))
    reading, costs = tokenized(units, language_of(text)), [one.tokens for one in shown]
    relevant = relevance(reading, pack.query, costs)
    candidates = Candidates(units, weighted_terms(reading), costs, reading_salience(reading), relevance=relevant if any(relevant) else None)
    chosen = CoverageChoice(candidates).fill(target_tokens(pack, "target_tokens", counter.count(text)))
    return json.dumps({"keep": sorted(shown[n].number for needs in chosen for n in needs) or [one.number for one in shown[:1]]})
