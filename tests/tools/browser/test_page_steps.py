"""Which button of a dialogue is pressed."""

import asyncio
from dataclasses import asdict
from typing import Any

import pytest

from pandora_dagster.tools.browser.page_steps import PageButton, dismissal, only_way, pass_privacy_dialogues


def buttons(*labels: str, text: str = "", typed: bool = False, dialogue: int = 0) -> list[PageButton]:
    return [PageButton(number, label, "", dialogue, text, typed) for number, label in enumerate(labels)]


@pytest.mark.parametrize(
    ("offered", "pressed"),
    [
        (buttons("Accept all", "Close", "Reject all"), "Reject all"),
        (buttons("Accept all", "Close"), "Close"),
        (buttons("Continue", "Pay 3", text="We use cookies"), None),
        (buttons("Accept", "Settings", text="We use cookies"), None),
        (buttons("Reject all", dialogue=-1), None),
        ([], None),
    ],
)
def test_a_dialogue_is_left_by_the_button_that_commits_to_nothing(offered: list[PageButton], pressed: str | None) -> None:
    found = dismissal(offered)
    assert (found.label if found else None) == pressed


@pytest.mark.parametrize(
    ("offered", "pressed"),
    [
        (buttons("Continue", "Pay 3", text="We use cookies"), "Continue"),
        (buttons("Accept", "Settings", text="We use cookies"), None),
        (buttons("Continue", text="Are you an adult?"), None),
        (buttons("Buy now", text="We use cookies"), None),
        (buttons("Continue", text="We use cookies", typed=True), None),
        (buttons("Continue", text="We use cookies", dialogue=-1), None),
    ],
)
def test_the_only_way_into_a_page_agrees_to_cookies_and_to_nothing_else(offered: list[PageButton], pressed: str | None) -> None:
    found = only_way(offered)
    assert (found.label if found else None) == pressed


class Page:
    """A page in front of which buttons are shown; it records the number of each button pressed."""

    def __init__(self, shown: list[PageButton]) -> None:
        self.shown = shown
        self.pressed: list[int] = []

    async def call(self, function: str, *arguments: Any) -> Any:
        if "click()" in function:
            self.pressed += arguments
        return [asdict(button) for button in self.shown] if function == "buttons" else None


@pytest.mark.parametrize(
    ("labels", "has_content", "may_accept", "pressed", "notice"),
    [
        (("Continue",), False, False, [], "shows nothing without it: 'We use cookies'; PANDORA_BROWSER_CONSENT=accept presses 'Continue'"),
        (("Continue",), False, True, [0], "was accepted with 'Continue'"),
        (("Continue",), True, True, [], "the page under it was read: 'We use cookies'"),
        (("Accept", "Settings"), False, True, [], "shows nothing without it: 'We use cookies'"),
    ],
)
def test_consent_is_given_where_the_user_allows_it_alone(
    labels: tuple[str, ...], has_content: bool, may_accept: bool, pressed: list[int], notice: str
) -> None:
    page = Page(buttons(*labels, text="We use cookies"))

    async def settle(_: float) -> None: ...

    async def finds_content() -> bool:
        return has_content

    (said,) = asyncio.run(pass_privacy_dialogues(page, "buttons", settle, finds_content, may_accept=may_accept))
    assert page.pressed == pressed
    assert said.endswith(notice)
