"""Which button of a dialogue is pressed."""

import pytest

from pandora_dagster.tools.browser.page_steps import PageButton, dismissal


def buttons(*labels: str, text: str = "", typed: bool = False, dialogue: int = 0) -> list[PageButton]:
    return [PageButton(number, label, "", dialogue, text, typed) for number, label in enumerate(labels)]


@pytest.mark.parametrize(
    ("offered", "pressed"),
    [
        (buttons("Accept all", "Close", "Reject all"), "Reject all"),
        (buttons("Accept all", "Close"), "Close"),
        (buttons("Continue", "Pay 3", text="We use cookies"), "Continue"),
        (buttons("Accept", "Settings", text="We use cookies"), None),
        (buttons("Continue", text="Are you an adult?"), None),
        (buttons("Buy now", text="We use cookies"), None),
        (buttons("Continue", text="We use cookies", typed=True), None),
        (buttons("Reject all", dialogue=-1), None),
        ([], None),
    ],
)
def test_a_dialogue_is_left_by_the_button_that_commits_to_nothing(offered: list[PageButton], pressed: str | None) -> None:
    found = dismissal(offered)
    assert (found.label if found else None) == pressed
