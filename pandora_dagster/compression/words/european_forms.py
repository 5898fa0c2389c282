"""What German, French, Spanish and Italian write otherwise than English: numbers, dates, words that bind or deny, points inside a sentence.

Closed word classes and forms of writing only, made from no data set; knows nothing of facts.
"""

import re

from pandora_dagster.language.sentences import AFTER_WORD, DAY, MONTH_NAMES

DECIMAL_COMMA = r"\d{1,3}(?:[.\u00a0\u202f]\d{3})+(?:,\d+)?(?!\d|[.,]\d)|(?<!\d,)\d+,(?:\d{1,2}|\d{4,9})(?!\d|[.,]\d)"
"""`1.738,92`, `11.400`, `3,42`: points or narrow blanks between thousands, a comma before the fraction."""
_GROUPS = re.compile(r"\d{1,3}(?:[.\u00a0\u202f ]\d{3})+")
_UNCLEAR = re.compile(r"[1-9]\d{0,2}\.\d{3}")
"""Thousands or a fraction: `11.400`. Nobody can tell from the number alone, so it equals itself only."""

_BEGINNINGS = (
    "jan|jän|gen|ene feb|fév|fev mar|mär apr|abr|avr may|mai|mag jun|juin|giu "
    "jul|juil|lug aug|août|ago sep|set oct|okt|ott nov dec|dez|dic|déc"
)
_MONTHS = tuple(re.compile(rf"\b(?:{names})") for names in _BEGINNINGS.split(" "))
_DOTTED = rf"{DAY}\.(?:0?[1-9]|1[0-2])\."
DAY_AND_MONTH = rf"(?:{AFTER_WORD}|(?<=[\-*•–] )|(?<=\()){_DOTTED}(?!\w)|{_DOTTED}(?=[:;,)\u2013]|\s[a-zäöüß(\u2013])"
"""`am 15.10.`, `15.10.: ...`: a day and a month without a year; not `15.10.` at an end, which is a price as well."""
NAMED_DATE = (
    rf"\d{{1,2}}(?:\.|er|º|°)?\s?(?:de |di |d['’])?{MONTH_NAMES}(?:,? (?:de |del )?\d{{4}}(?!\w))?|{MONTH_NAMES}(?: de| del)? \d{{4}}(?!\w)"
)
UNITS = (
    r"Tagen?|Nächten?|Wochen?|Monat(?:en?|s)?|Jahr(?:en?|s)?|Stunden?|Minuten?|Sekunden?|Personen|Stück|Gästen?|jours?|semaines?|mois|ans?|heures?"
    r"|personnes?|días?|semanas?|mes(?:es)?|años?|horas?|personas?|giorni|settimane|mesi|anni|persone|kWh?p?|MWh|qm|m[²³]|ha"
)

NEGATIONS = (
    "nicht nichts nie niemals niemand kein keine keinen keinem keiner keines keinesfalls keineswegs weder ohne "
    "ne n'est pas jamais aucun aucune sans rien nunca jamás ningún ninguno ninguna sin tampoco nessun nessuno nessuna senza"
)
_DENIAL = r"(?:nicht|nichts|nie|niemals|kein\w*|keinesfalls|nur)"
BINDING = (
    rf"(?:darf|darfst|dürfen|dürft) (?:[\w\-]+ ){{0,8}}?{_DENIAL}|(?:muss|muß|musst|müssen|müsst)|darf|dürfen|"
    r"(?:nicht|un)[ ]?(?:zulässig|erlaubt|gestattet)|verboten|untersagt|verpflichtet|zwingend|"
    r"höchstens|mindestens|spätestens|frühestens|maximal|keinesfalls|auf keinen Fall|nicht (?:mehr|weniger|später|früher) als|"
    r"(?:nicht )?nur (?:bis|ab|mit|bei|wenn|falls|für|unter|nach|vor|in|im|am|an)|"
    r"(?:ne )?(?:doit|doivent)(?: pas| jamais)?|ne (?:peut|peuvent) (?:pas|jamais)|interdite?s?|obligatoires?|"
    r"au plus(?: tard| tôt)?|au moins|au (?:maximum|minimum)|"
    r"(?:no )?(?:debe|deben|debemos|debes)|no (?:puede|pueden|se permite)|prohibid[oa]s?|obligatori[oa]s?|"
    r"(?:como|al) (?:máximo|mínimo|menos)|a más tardar|a lo sumo|(?:non )?(?:deve|devono)|non (?:può|possono)|vietat[oaie]|"
    r"al (?:massimo|più tardi)|almeno"
)
"""What binds whoever says it."""
FORCE = (
    r"nie|niemals|ohne|außer|ausser|es sei denn|kann (?:\w+ ){0,3}?nicht|können (?:\w+ ){0,3}?nicht|"
    r"will (?:\w+ ){0,3}?(?:nicht|kein\w*)|"
    r"(?:binnen|innerhalb|unter|über|bis zu)(?= (?:von |€ ?)?\d)|jamais|sans|sauf|"
    r"à moins que|nunca|excepto|a menos que|mai più|tranne|senza"
)
IMPERATIVE = (
    r"\b[Bb]itte (?:[\w\-]+ ){0,4}?(?:nicht|kein\w*|nie)\b|^\W{0,4}[Nn]e \w+ (?:pas|jamais)\b"
    r"|^\W{0,4}(?:[Pp]or favor,? |[Pp]er favore,? )(?:no|non|nunca) \w"
)
PREFERENCE = r"lieber|am liebsten|bevorzug\w*|idealerweise|de préférence|préfér\w*|prefer(?:isco|irei|iría)|prefier\w*"
PREFERENCE_HINTS = "lieb|bevorzug|idealerweise|préfér|prefier"
"""Parts of words of which one stands in every preference, but for `prefer`."""
ENDS, BEGINS = ("bis", "vor"), ("ab", "seit", "nach")


def month_of(text: str) -> int:
    """The month that a date in lower case names, 0 for none."""
    return next((number for number, name in enumerate(_MONTHS, 1) if name.search(text)), 0)


def english(number: str) -> str:
    """A number as English writes it, `1.738,92` -> `1738.92`; `11.400`, which may be either, as it is."""
    whole, comma, fraction = number.partition(",")
    if comma and "," not in fraction and "." not in fraction and (len(fraction) != 3 or not whole.isdigit()):
        return "".join(sign for sign in whole if sign.isdigit()) + "." + fraction
    grouped = _GROUPS.fullmatch(number)
    return "".join(sign for sign in number if sign.isdigit()) if grouped and not is_unclear(number) and number[0] != "0" else number


def is_unclear(number: str) -> bool:
    """Whether a point of a number may stand before a fraction or between thousands."""
    return bool(_UNCLEAR.fullmatch(number))
