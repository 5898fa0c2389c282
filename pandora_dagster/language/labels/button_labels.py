"""Labels of buttons on web pages, by what pressing them does, in the languages of most sites.

A label is compared as a whole or by a phrase in it, in lower case.
"""

import re
from enum import StrEnum


class ButtonAction(StrEnum):
    """What a button does, as far as its label says."""

    REFUSE = "refuse"
    CLOSE = "close"
    MORE = "more"
    COMMIT = "commit"
    """It buys, subscribes, signs in, confirms an age: for a person alone."""
    OTHER = "other"


_COMMIT = (
    "buy|pay|order|checkout|subscri|sign ?in|sign ?up|log ?in|register|donate|download|install|continue as|age\\b|years|kaufen|bezahl"
    "|bestell|abonn|anmeld|einlogg|registrier|spenden|jahre|achet|payer|command|connexion|connecter|inscri|comprar?\\b|pagar|suscri|iniciar|registr"
    "|acquist|paga|abbon|acced|iscri|kopen|betaal|inlog|aanmeld|assinar|entrar|kup|zapłać|zaloguj"
)
_REFUSE = (
    "reject|refuse|decline|deny|disagree|necessary|essential|without (?:accepting|consent|agreeing)|do not (?:accept|consent|sell)"
    "|no,? thanks|ablehn|verweiger|notwendig|erforderlich|essenziell|nein|ohne (?:zustimmung|einwilligung)|refuser|refus|rejeter"
    "|sans accepter|nécessaire|rechaz|denegar|necesari|rifiut|necessari|senza accettare|weiger|afwijz|noodzakelijk|recusar|rejeitar"
    "|necessári|odrzu|niezbędn|avvis|afvis|neka|nödvändig"
)
_CLOSE = "close|dismiss|not now|skip|schlie(?:ß|ss)en|später|fermer|plus tard|cerrar|ahora no|chiudi|sluiten|fechar|zamknij|luk|stäng"
_MORE = (
    "(?:load|show|see|view) (?:\\d+ )?more|more (?:results|items|products|posts|comments|reviews)"
    "|mehr (?:laden|anzeigen|ergebnisse|produkte)|weitere (?:laden|anzeigen|ergebnisse|produkte|artikel)"
    "|(?:voir|afficher|charger) (?:plus|davantage)|(?:cargar|ver|mostrar) más"
    "|(?:carica|mostra|vedi) (?:altr|di più)|(?:meer|toon) (?:laden|meer|tonen)|(?:carregar|ver|mostrar) mais|pokaż więcej|załaduj więcej"
)
_CLOSING_SIGNS = frozenset({"×", "✕", "✖", "x", "⨯"})
_PRIVACY = re.compile(
    "cookie|consent|privacy|gdpr|datenschutz|einwillig|zustimm|confidentialité|privacidad|privacidade|riservatezza|prywatno", re.IGNORECASE
)
_PATTERNS = {
    action: re.compile(rf"\b(?:{pattern})", re.IGNORECASE)
    for action, pattern in (
        (ButtonAction.COMMIT, _COMMIT),  # first: "refuse and subscribe"
        (ButtonAction.REFUSE, _REFUSE),
        (ButtonAction.CLOSE, _CLOSE),
        (ButtonAction.MORE, _MORE),
    )
}
_MAX_LABEL_CHARACTERS = 80
"""A longer text is no label."""


def button_action(label: str) -> ButtonAction:
    """What a button with this label does."""
    text = " ".join(label.split()).lower()
    if text in _CLOSING_SIGNS:
        return ButtonAction.CLOSE
    if not text or len(text) > _MAX_LABEL_CHARACTERS:
        return ButtonAction.OTHER
    return next((action for action, pattern in _PATTERNS.items() if pattern.search(text)), ButtonAction.OTHER)


def is_about_privacy(text: str) -> bool:
    """Whether a dialogue asks about cookies or personal data."""
    return bool(_PRIVACY.search(text))
