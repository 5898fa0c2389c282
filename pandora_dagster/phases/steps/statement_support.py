"""Whether the sources say what an answer says, by a model: each statement beside the passage that it cites (specification 000, section 14).

Code compared values, names, dates, quotations and negation before (`judge_claims`): what it refuses never comes here, what it finds
doubtful does. A statement that is verbatim in its source needs no model. What kind of statement an uncited one is whose form leaves that
open, says the validator: only a fact needs a source.
"""

from collections.abc import Iterator, Sequence

from pandora_dagster.compression.verification.claim_support import ClaimVerdict
from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.phase_outputs import MeaningVerdicts, UncitedStatement
from pandora_dagster.errors import DeferredError
from pandora_dagster.execution.fit.compression_calls import FRAME_TOKENS
from pandora_dagster.execution.fit.model_rewriting import MAX_STATEMENTS, statement_pairs
from pandora_dagster.phases.core.phase_context import PhaseContext, parsed_answer

MEANING = "compression/verify_meaning"


def uncited_document(claims: Sequence[ClaimVerdict]) -> str:
    """The statements whose kind their form leaves open, numbered from 1; "" without one."""
    return "\n".join(f"[{number}] {' '.join(claim.statement.split())}" for number, claim in enumerate(_open(claims), 1))


def uncited_facts(claims: Sequence[ClaimVerdict], kinds: Sequence[UncitedStatement]) -> tuple[str, ...]:
    """An issue for each statement of `uncited_document` that states a fact: as the validator says, or else as its form says."""
    judged = {entry.number for entry in kinds}
    facts = {entry.number for entry in kinds if entry.kind == "fact"}
    return tuple(
        str(claim) for number, claim in enumerate(_open(claims), 1) if (number in facts if number in judged else claim.outcome == "refused")
    )


def _open(claims: Sequence[ClaimVerdict]) -> list[ClaimVerdict]:
    return [claim for claim in claims if claim.is_kind_open]


async def unsupported_statements(ctx: PhaseContext, claims: Sequence[ClaimVerdict]) -> tuple[str, ...]:
    """An issue for each statement of which a model finds that its source does not say it.

    A statement that no call has room for is not judged, nor is one after a call that the rate limit of the session deferred.
    """
    issues: list[str] = []
    for batch in _batches(ctx, [claim for claim in claims if claim.needs_model]):
        pairs = InputDocument("pairs", statement_pairs([(claim.source, claim.statement) for claim in batch]))
        try:
            result = await ctx.ask(MEANING, (pairs,), query="")
        except DeferredError:
            break
        for judged in parsed_answer(result, MeaningVerdicts).verdicts:
            if judged.verdict == "changed" and judged.number <= len(batch):
                issues.append(_issue(batch[judged.number - 1], judged.reason))
    return tuple(issues)


def _issue(claim: ClaimVerdict, reason: str) -> str:
    cited = ", ".join(f"[{label}]" for label in claim.labels)
    return f'"{claim.statement}": {reason or "the source does not say this"}; {cited} says: {" ".join(claim.source.split())}'


def _batches(ctx: PhaseContext, claims: Sequence[ClaimVerdict]) -> Iterator[list[ClaimVerdict]]:
    """The claims in calls of at most `MAX_STATEMENTS`, each within the recipe's input budget; one over the budget alone is left out."""
    limit = ctx.deps.recipes.get(MEANING, ctx.mode).recipe.token_budget.input - FRAME_TOKENS
    batch, tokens = list[ClaimVerdict](), 0
    for claim in claims:
        cost = ctx.deps.counter.count(statement_pairs([(claim.source, claim.statement)]) + "\n")
        if cost > limit:
            continue
        if batch and (len(batch) == MAX_STATEMENTS or tokens + cost > limit):
            yield batch
            batch, tokens = [], 0
        batch.append(claim)
        tokens += cost
    if batch:
        yield batch
