"""Role `meaning_checker`: this runtime does not judge meaning, and says so; every statement stays unchecked."""

import json
import re

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.runtime.extractive.output_budget import Draft
from pandora_dagster.runtime.extractive.words.answer_templates import TEMPLATES

_PAIR = re.compile(r"^\[(\d{1,2})\] source: ", re.MULTILINE)


def check_meaning(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """`unclear` for every pair, with the reason."""
    numbers = [int(number) for number in _PAIR.findall(pack.document("pairs"))]
    return json.dumps({"verdicts": [{"number": n, "reason": TEMPLATES["no_meaning"], "verdict": "unclear"} for n in numbers]})


ANSWERS = {"meaning_checker": check_meaning}
"""Recipe field `role` -> the function that answers it."""
