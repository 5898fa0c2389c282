"""Pages that only a person can open (a login, a captcha): the turn halts for them, and goes on with the text that the user gives.

The decisions are in `pages_by_hand.json` of the turn. A page is asked for once.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import ValidationError

from pandora_dagster.contracts.enums import InterventionType, TurnState
from pandora_dagster.contracts.ids import TurnKey, turn_number, user_id
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.strict_model import StrictModel
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.errors import DocumentError, HaltError, InputError
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.core.phase_context import PhaseContext, as_json

PAGES = "pages_by_hand.json"
MAX_PAGE_CHARACTERS = 1_000_000
_HINT = "Open it in a browser and give its text with --answer FILE, or go on without it with --refuse."


class ManualPage(StrictModel):
    """One page that was asked for, and what the user gave."""

    url: str
    intervention: str
    decision: Literal["open", "given", "refused"] = "open"
    text: str = ""
    decided_at: str = ""


class ManualPages(StrictModel):
    """`pages_by_hand.json`: the pages of one turn, oldest first."""

    pages: tuple[ManualPage, ...] = ()


def decided_pages(turn: Turn) -> Mapping[str, str]:
    """Address -> text of the pages that the user decided about; "" for one that the turn goes on without."""
    return {page.url: page.text for page in _pages_of(turn).pages if page.decision != "open"}


def page_halt(ctx: PhaseContext, url: str) -> HaltError:
    """The HALT for a page that was not decided about; its intervention has the address and what to do."""
    message = f"{url}: wants a login or a captcha, and no other page answers"
    asked = next((page.intervention for page in _pages_of(ctx.turn).pages if page.url == url), "")
    if asked and ctx.deps.interventions.show(asked).is_open:
        return HaltError(message, intervention_id=asked, hint=_HINT)
    halt = ctx.halt(InterventionType.NEEDS_PERSON, message, hint=_HINT)
    decided = (page for page in _pages_of(ctx.turn).pages if page.decision != "open")
    ctx.halt_files[PAGES] = as_json(ManualPages(pages=(*decided, ManualPage(url=url, intervention=halt.intervention_id))))
    return halt


def page_files(turn: Turn) -> dict[str, str]:
    """`pages_by_hand.json` as the finished phase stores it; nothing where no page was asked for."""
    return {name: text for name, text in turn.files.items() if name == PAGES}


def decide_page(deps: PhaseDependencies, intervention: Intervention, text: str) -> TurnKey:
    """Store the text of the page that an intervention asks for, "" to go on without it; the turn then goes on with `run_turn`.

    Raises InputError where the intervention asks for no page, or is decided already.
    """
    if intervention.type is not InterventionType.NEEDS_PERSON:
        raise InputError(f"intervention {intervention.id}: {intervention.type}: expected one that asks for a page")
    if len(text) > MAX_PAGE_CHARACTERS:
        raise InputError(f"the page has {len(text):,} characters: expected at most {MAX_PAGE_CHARACTERS:,}")
    key = TurnKey(user_id(intervention.user_id), turn_number(intervention.turn_id))
    with deps.turns.lock(key):
        turn = deps.turns.load(key)
        pages = _pages_of(turn).pages
        is_waiting = turn.manifest.state is TurnState.HALTED and turn.manifest.intervention == intervention.id
        if not is_waiting or all(page.intervention != intervention.id for page in pages):
            raise InputError(f"intervention {intervention.id}: {key} no longer waits for it: expected an open one")
        decision = {"decision": "given" if text.strip() else "refused", "text": text, "decided_at": deps.now}
        decided = [page.model_copy(update=decision) if page.intervention == intervention.id else page for page in pages]
        deps.turns.commit(turn, phase=None, files={PAGES: as_json(ManualPages(pages=tuple(decided)))})
    return key


def _pages_of(turn: Turn) -> ManualPages:
    try:
        return ManualPages.model_validate_json(turn.files[PAGES]) if PAGES in turn.files else ManualPages()
    except ValidationError as error:
        raise DocumentError(f"{turn.key}: {PAGES}: {error.errors()[0]['msg']}: expected the decisions on pages") from error
