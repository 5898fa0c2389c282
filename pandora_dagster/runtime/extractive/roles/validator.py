"""Roles `validator`, whether citations resolve and numbers, ids and addresses are in the evidence, and `meaning_checker` (`unclear`)."""

import json
import re

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.phase_outputs import ValidationVerdict
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.citations import cited_labels, source_references
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.output_budget import Draft, fit_draft
from pandora_dagster.runtime.extractive.queries.entities import identifiers

_CITATION = re.compile(r"\[\d{1,4}\](?![(\[:])")
_PAIR = re.compile(r"^\[(\d{1,2})\] source: ", re.MULTILINE)
_ORDINAL = re.compile(r"^\s*\d{1,3}[.)]\s+", re.MULTILINE)


def validate(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Specification 000, section 7's final gate by comparison: APPROVE, or REVISE with an issue for each thing that does not hold."""
    context = ContextDocument.parse(pack.document("context.md"))
    response = context.body(5)
    labels = cited_labels(response)
    known_labels = {s.label for s in (*pack.sources, *source_references(context.body(2)), *source_references(context.body(4)))}
    issues = (
        *([] if response.strip() else [TEMPLATES["empty"]]),
        *(f"{TEMPLATES['citation_issue']} [{label}]" for label in labels if label not in known_labels),
        *(f"{TEMPLATES['number_issue']} {value}" for value in unsupported_values(response, pack.query, context)),
    )

    def make(n: int) -> ValidationVerdict:
        return ValidationVerdict(
            decision="REVISE" if issues else "APPROVE",
            confidence=0.9,
            issues=issues[:n],
            checked_citations=labels[:n],
            reasoning=TEMPLATES["revise" if issues else "approved"],
        )

    return fit_draft(make, max(len(labels), len(issues), 1), pack.max_output_tokens, counter)


def unsupported_values(response: str, query: str, context: ContextDocument) -> tuple[str, ...]:
    """Numbers, ids and addresses of `response` that are in none of the sections 0, 2 and 4."""
    claims = _ORDINAL.sub("", _CITATION.sub("", response))
    evidence = "\n".join((query, context.body(2), context.body(4)))
    supported = set(identifiers(evidence))
    evidence_without_commas = evidence.replace(",", "")
    return tuple(
        v
        for v in identifiers(claims)
        if v not in supported and not re.search(rf"(?<![\w.]){re.escape(v)}(?!\w|\.\d)", evidence_without_commas)
    )


def check_meaning(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """`unclear` for every pair: this runtime does not judge meaning, and says so."""
    numbers = [int(number) for number in _PAIR.findall(pack.document("pairs"))]
    return json.dumps({"verdicts": [{"number": n, "reason": TEMPLATES["no_meaning"], "verdict": "unclear"} for n in numbers]})
