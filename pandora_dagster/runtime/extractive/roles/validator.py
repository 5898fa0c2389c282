"""Roles `validator`, whether citations resolve and sources support the statements that cite them, and `meaning_checker` (`unclear`)."""

import json
import re

from pandora_dagster.compression.verification.cited_passages import cited_passages
from pandora_dagster.compression.verification.claim_support import judge_claims
from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.phase_outputs import ValidationVerdict
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.citations import cited_labels, source_references
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.output_budget import Draft, fit_draft
from pandora_dagster.runtime.extractive.queries.query_intent import is_greeting

_PAIR = re.compile(r"^\[(\d{1,2})\] source: ", re.MULTILINE)


def validate(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Specification 000, section 7's final gate by comparison: APPROVE, or REVISE with an issue for each thing that does not hold."""
    context = ContextDocument.parse(pack.document("context.md"))
    response = context.body(5)
    labels = cited_labels(response)
    known_labels = {s.label for s in (*pack.sources, *source_references(context.body(2)), *source_references(context.body(4)))}
    claims = judge_claims(response, cited_passages(context), query=pack.query, is_greeting=is_greeting(pack.query))
    issues = (
        *([] if response.strip() else [TEMPLATES["empty"]]),
        *(f"{TEMPLATES['citation_issue']} [{label}]" for label in labels if label not in known_labels),
        *(str(claim) for claim in claims if claim.reason),
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


def check_meaning(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """`unclear` for every pair: this runtime does not judge meaning, and says so."""
    numbers = [int(number) for number in _PAIR.findall(pack.document("pairs"))]
    return json.dumps({"verdicts": [{"number": n, "reason": TEMPLATES["no_meaning"], "verdict": "unclear"} for n in numbers]})
