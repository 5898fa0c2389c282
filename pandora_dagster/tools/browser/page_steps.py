"""What is done on a rendered page before it is read: dialogues in front of it are closed, lists that load more are followed."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pandora_dagster.language.labels.button_labels import ButtonAction, button_action, is_about_privacy

_MAX_DIALOGUES = 3
_PRESS = "(number) => { globalThis.pandoraButtons[number].click() }"
_SET_ASIDE = """(numbers) => {
  const text = (el) => el.innerText.trim();
  const chosen = numbers.map((number) => pandoraDialogues[number]);
  const around = (el) => !text(el) || chosen.some((d) => el.contains(d) && text(el) === text(d));
  globalThis.pandoraAside = [...new Set([...chosen, ...pandoraDialogues.filter(around)])].map((el) => [el, el.getAttribute("style")]);
  for (const [el] of pandoraAside) el.style.setProperty("display", "none", "important");
}"""
"""Hides dialogues and the veils around and behind them, as a reader does who looks past them."""
_PUT_BACK = (
    "() => { for (const [el, style] of pandoraAside) style === null ? el.removeAttribute('style') : el.setAttribute('style', style) }"
)
_SIZE = "() => document.body ? document.body.innerText.length : 0"
_SCROLL = "() => { scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' }); dispatchEvent(new Event('scroll')) }"
_CAN_SCROLL = "() => document.documentElement.scrollHeight > innerHeight + 4"


@dataclass(frozen=True, slots=True)
class PageButton:
    """A visible button; `number` names it to the page's script."""

    number: int
    label: str
    sign: str
    """Its name for a screen reader."""
    dialogue: int
    """The number of the dialogue that it belongs to; -1 for none."""
    text: str
    """The text of the dialogue."""
    typed: bool
    """Whether it belongs to a form that one types into."""

    @property
    def action(self) -> ButtonAction:
        found = button_action(self.label)
        return button_action(self.sign) if found is ButtonAction.OTHER and self.sign != self.label else found


class PageScript(Protocol):
    """Runs functions on the page where its own scripts cannot interfere."""

    async def call(self, function: str, *arguments: Any) -> Any: ...


Settle = Callable[[float], Awaitable[None]]
"""Waits until the page is quiet, at most so many seconds."""


def dismissal(buttons: Sequence[PageButton]) -> PageButton | None:
    """The button that takes a dialogue away without agreeing to anything; None where there is none.

    A button that refuses comes before one that closes. No button is pressed that buys, signs in or belongs to a form that one types into,
    but for closing.
    """
    inside = [button for button in buttons if button.dialogue >= 0]
    for wanted in (ButtonAction.REFUSE, ButtonAction.CLOSE):
        for button in inside:
            if button.action is wanted and (wanted is ButtonAction.CLOSE or not button.typed):
                return button
    return None


def only_way(buttons: Sequence[PageButton]) -> PageButton | None:
    """The only button of a dialogue about privacy that commits to nothing else; None where there are several, or none."""
    inside = [button for button in buttons if button.dialogue >= 0 and is_about_privacy(button.text)]
    for button in inside:
        others = [other for other in inside if other.dialogue == button.dialogue and other.action is not ButtonAction.COMMIT]
        if len(others) == 1 and button.action is ButtonAction.OTHER and button.label and not button.typed:
            return button
    return None


async def close_dialogues(script: PageScript, buttons_script: str, settle: Settle) -> list[str]:
    """Close the dialogues in front of the page; returns a notice for each."""
    notices: list[str] = []
    for _ in range(_MAX_DIALOGUES):
        button = dismissal(await _buttons(script, buttons_script))
        if button is None:
            break
        await script.call(_PRESS, button.number)
        await settle(1.5)
        how = "refused" if button.action is ButtonAction.REFUSE else "closed"
        notices.append(f"a dialogue was {how} with {_shown_label(button)!r}")
    return notices


async def pass_privacy_dialogues(
    script: PageScript, buttons_script: str, settle: Settle, has_content: Callable[[], Awaitable[bool]], *, may_accept: bool
) -> list[str]:
    """Leave the dialogues about privacy that cannot be refused or closed unanswered: consent is the user's. Returns a notice for each.

    The page under them is read where `has_content` finds text there, else the dialogue is what the page shows. With `may_accept`, the only
    button of such a dialogue is pressed; of several, none: what it agrees to ends with the page, whose context is thrown away.
    """
    buttons = await _buttons(script, buttons_script)
    dialogues = {button.dialogue: button for button in buttons if button.dialogue >= 0 and is_about_privacy(button.text)}
    if not dialogues:
        return []
    await script.call(_SET_ASIDE, list(dialogues))
    if await has_content():
        return [f"a dialogue was not answered, and the page under it was read: {_shown_text(b)!r}" for b in dialogues.values()]
    await script.call(_PUT_BACK)
    button = only_way(buttons)
    if button is None or not may_accept:
        hint = f"; PANDORA_BROWSER_CONSENT=accept presses {_shown_label(button)!r}" if button else ""
        return [f"a dialogue was not answered, and the page shows nothing without it: {_shown_text(b)!r}{hint}" for b in dialogues.values()]
    await script.call(_PRESS, button.number)
    await settle(1.5)
    return [f"a dialogue without which the page shows nothing was accepted with {_shown_label(button)!r}"]


def _shown_text(button: PageButton) -> str:
    return " ".join(button.text.split())[:100]


def _shown_label(button: PageButton) -> str:
    return " ".join((button.label or button.sign).split())[:60]


async def follow_list(script: PageScript, buttons_script: str, settle: Settle, *, max_steps: int) -> list[str]:
    """Load the rest of a list by its button or by scrolling, until nothing is added; returns a notice where it goes on."""
    for step in range(max_steps):
        size = await script.call(_SIZE)
        more = [b for b in await _buttons(script, buttons_script) if b.action is ButtonAction.MORE and b.dialogue < 0 and not b.typed]
        if more:
            await script.call(_PRESS, more[-1].number)
        elif not step or await script.call(_CAN_SCROLL):
            await script.call(_SCROLL)
        await settle(1.5)
        if await script.call(_SIZE) <= size:
            return []
    return [f"the page loads more after {max_steps} steps: the rest was not loaded"]


async def _buttons(script: PageScript, buttons_script: str) -> list[PageButton]:
    return [PageButton(**row) for row in await script.call(buttons_script)]
