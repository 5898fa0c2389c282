"""Roles `fact_keeper` and `profile_keeper` (specification 002, section 4): facts as whole sentences of the user, and what must go."""

from collections.abc import Sequence

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.user.user_memory import MAX_PROFILE_FACTS, MAX_SESSION_FACTS, FactCategory, FactsDiff, FactUpsert
from pandora_dagster.documents.pasted_blocks import own_words
from pandora_dagster.phases.gather.fact_lines import FactLine, read_ledger_lines
from pandora_dagster.runtime.extractive.output_budget import Draft, fit_draft
from pandora_dagster.runtime.extractive.queries.content_words import terms
from pandora_dagster.runtime.extractive.queries.user_statements import contradicts, extract_facts, retracted_stems, shared_matter


def keep_facts(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The diff of specification 002, section 4: each new statement verbatim, what it contradicts, and what the user retracts."""
    known = read_ledger_lines(pack.document("known_facts"))
    said = own_words(pack.query)
    deleted = tuple(dict.fromkeys(f.name for thing in retracted_stems(said) for f in known if thing <= frozenset(terms(f.text))))
    held = [f for f in known if f.is_current and f.name not in deleted]
    upserts = [_upsert(sentence, category, held) for sentence, category in extract_facts(said)][-MAX_SESSION_FACTS:]

    def make(n: int) -> FactsDiff:
        return FactsDiff(upsert=tuple(upserts[len(upserts) - n :]), delete=deleted)

    return fit_draft(make, len(upserts), pack.max_output_tokens, counter)


def keep_profile(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """What must go so that the profile fits again: what no longer holds, then what a newer fact says as well, then the oldest."""
    known = read_ledger_lines(pack.document("profile_facts"))
    stems = {f.name: frozenset(terms(f.text)) for f in known}
    repeated = [f for f in known if f.is_current and any(stems[f.name] < stems[g.name] for g in known if g.is_current and g.turn > f.turn)]
    order = [*(f for f in known if not f.is_current), *repeated, *sorted(known, key=lambda f: f.turn)]
    return FactsDiff(delete=tuple(dict.fromkeys(f.name for f in order))[: max(0, len(known) - MAX_PROFILE_FACTS)])


def _upsert(sentence: str, category: FactCategory, held: Sequence[FactLine]) -> FactUpsert:
    return FactUpsert(category=category, fact=sentence, replaces=_superseded(sentence, held))


def _superseded(sentence: str, held: Sequence[FactLine]) -> str | None:
    """The fact whose matter is most that of the new sentence, of those that it contradicts. None where two are as close: both stay, since a
    fact that is no longer current limits nothing."""
    scores = {f.name: shared_matter(sentence, f.text) for f in held if contradicts(sentence, f.text)}
    best = [name for name, score in scores.items() if score == max(scores.values())]
    return best[0] if len(best) == 1 else None
