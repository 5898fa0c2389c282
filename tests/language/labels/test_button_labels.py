"""What a button does, by its label."""

import pytest

from pandora_dagster.language.labels.button_labels import ButtonAction, button_action, is_about_privacy


@pytest.mark.parametrize(
    ("label", "action"),
    [
        ("Reject all", ButtonAction.REFUSE),
        ("Use necessary cookies only", ButtonAction.REFUSE),
        ("Alle ablehnen", ButtonAction.REFUSE),
        ("Continuer sans accepter", ButtonAction.REFUSE),
        ("Rechazar todo", ButtonAction.REFUSE),
        ("Refuse and subscribe", ButtonAction.COMMIT),
        ("Jetzt kaufen", ButtonAction.COMMIT),
        ("I am over 18 years old", ButtonAction.COMMIT),
        ("Sign in", ButtonAction.COMMIT),
        (" × ", ButtonAction.CLOSE),
        ("Schließen", ButtonAction.CLOSE),
        ("Show 20 more", ButtonAction.MORE),
        ("Weitere Ergebnisse", ButtonAction.MORE),
        ("Voir plus", ButtonAction.MORE),
        ("Accept all", ButtonAction.OTHER),
        ("", ButtonAction.OTHER),
        ("Reject " + "x" * 100, ButtonAction.OTHER),
    ],
)
def test_a_label_says_what_a_button_does(label: str, action: ButtonAction) -> None:
    assert button_action(label) is action


def test_a_dialogue_about_cookies_is_about_privacy() -> None:
    assert is_about_privacy("We use Cookies.")
    assert not is_about_privacy("You must be an adult.")
