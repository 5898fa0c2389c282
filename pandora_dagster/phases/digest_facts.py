"""What a person stated, as a digest keeps it: each fact with its date, one that a later one contradicts with both (DECISIONS 7).

The same call, screening and ledger as a live session's notable facts (002 section 4); here over turns of many sessions, by date.
"""

from collections.abc import Iterable

from pandora_dagster.contracts.facts import MAX_PROFILE_FACTS, FactLedger, FactsDiff
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.levels import LevelSubject, TurnLink
from pandora_dagster.errors import UnknownTurnError
from pandora_dagster.phases.ctx import PhaseContext, parsed_answer
from pandora_dagster.phases.levels import LevelContext
from pandora_dagster.phases.remembering import FACTS, facts_document, may_state_fact, screen_facts
from pandora_dagster.selection.fact_ledger import ChangeOrigin, apply_diff, resolve_by_date
from pandora_dagster.text.dates import format_timestamp
from pandora_dagster.text.pasted import own_words


async def with_stated_facts(ledger: FactLedger, links: Iterable[TurnLink], subject: LevelSubject, ctx: LevelContext) -> FactLedger:
    """The ledger with what the person stated in these turns, oldest first; a call for each turn that states anything.

    Raises HaltError, DocumentError for a turn that can not be read. One that is gone meanwhile states nothing.
    """
    asked: list[tuple[TurnKey, int]] = []
    for link in sorted(links, key=lambda one: (one.at, one.turn)):
        try:
            turn = ctx.deps.turns.load(TurnKey(subject.user, link.turn))
        except UnknownTurnError:
            continue
        at = PhaseContext("user_digests", turn, ctx.background)
        said = own_words(at.query)
        if not may_state_fact(said):
            continue
        result = await at.ask(FACTS, [facts_document("known_facts", ledger.facts)])
        diff, refused = screen_facts(parsed_answer(result, FactsDiff), said, ledger.facts)
        now = format_timestamp(ctx.deps.clock().replace(microsecond=0))
        occasion = ChangeOrigin(turn.key.turn_id, turn.key.number, link.at, now, result.record.call_id)
        asked.append((turn.key, turn.manifest.revision))
        ledger = resolve_by_date(apply_diff(ledger, diff, occasion, most=MAX_PROFILE_FACTS, refused=refused)[0])
    ctx.deps.calls.index_turns(asked)
    return ledger
