"""What German, French, Spanish and Italian write otherwise than English: numbers, dates, words that bind or deny, points inside a sentence.

Closed word classes and forms of writing only, made from no data set; knows nothing of facts.
"""

import re
from collections.abc import Iterator

DECIMAL_COMMA = r"\d{1,3}(?:[.\u00a0\u202f]\d{3})+(?:,\d+)?(?!\d|[.,]\d)|(?<!\d,)\d+,(?:\d{1,2}|\d{4,9})(?!\d|[.,]\d)"
"""`1.738,92`, `11.400`, `3,42`: points or narrow blanks between thousands, a comma before the fraction."""
_GROUPS = re.compile(r"\d{1,3}(?:[.\u00a0\u202f ]\d{3})+")
_UNCLEAR = re.compile(r"[1-9]\d{0,2}\.\d{3}")
"""Thousands or a fraction: `11.400`. Nobody can tell from the number alone, so it equals itself only."""

MONTH_NAMES = (
    r"(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
    r"|[Jj]anvier|[Ff]évrier|[Mm]ars|[Aa]vril|mai|[Jj]uin|[Jj]uillet|[Aa]oût|septembre|octobre|novembre|[Dd]écembre|Septembre|Octobre|Novembre"
    r"|[Ee]nero|[Ff]ebrero|[Mm]arzo|[Aa]bril|[Mm]ayo|[Jj]unio|[Jj]ulio|[Aa]gosto|[Ss]eptiembre|[Oo]ctubre|[Nn]oviembre|[Dd]iciembre"
    r"|[Gg]ennaio|[Ff]ebbraio|[Aa]prile|[Mm]aggio|[Gg]iugno|[Ll]uglio|[Ss]ettembre|[Oo]ttobre|novembre|[Dd]icembre)\b"
)
_BEGINNINGS = (
    "jan|jän|gen|ene feb|fév|fev mar|mär apr|abr|avr may|mai|mag jun|juin|giu "
    "jul|juil|lug aug|août|ago sep|set oct|okt|ott nov dec|dez|dic|déc"
)
_MONTHS = tuple(re.compile(rf"\b(?:{names})") for names in _BEGINNINGS.split(" "))
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_DOTTED = rf"{_DAY}\.(?:0?[1-9]|1[0-2])\."
_BEFORE_DAYS = (
    "am",
    "vom",
    "bis",
    "zum",
    "ab",
    "seit",
    "der",
    "den",
    "dem",
    "des",
    "im",
    "das",
    "die",
    "beim",
    "nach",
    "vor",
    "und",
    "oder",
)
_AFTER_WORD = "|".join(rf"(?<=\b{word} )" for word in _BEFORE_DAYS)
DAY_AND_MONTH = rf"(?:{_AFTER_WORD}|(?<=[\-*•–] )|(?<=\()){_DOTTED}(?!\w)|{_DOTTED}(?=[:;,)\u2013]|\s[a-zäöüß(\u2013])"
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

_ABBREVIATIONS = (
    r"Dr|Mr|Mrs|Ms|Prof|Dipl|Ing|Hr|Fr|Fa|St|Nr|Abs|Ziff|Tel|Str|bzw|ca|evtl|ggf|inkl|incl|exkl|excl|zzgl|vgl|gem|lt|max|min|approx|vs|cf|"
    r"tel|fax|nos?(?=\.\s\d)|Mme|Mlle|Sr|Sra|Srta|Sig|Dott|Avv|Ing|resp|sog|Mio|Mrd|pp|Art(?=\.\s\d)|No(?=\.\s\d)|Fig(?=\.\s\d)|Sec(?=\.\s\d)|S(?=\.\s\d)"
)
_ABBREVIATED = re.compile("(?:" + _ABBREVIATIONS.replace(r"(?=\.\s\d)", "") + ")$")
_LONGEST_ABBREVIATION, _AROUND = 8, 40
"""Characters of the longest abbreviation, and those on each side of a point that tell what it is."""
_INSIDE = re.compile(
    rf"(?<![\w.])(?:{_ABBREVIATIONS})(?P<a>\.)(?=\s)"
    r"|(?<![\w.])(?!(?:a|p)\. ?m\.)[a-z](?P<b>\.)(?= ?[A-Za-z]\.)"
    r"|(?:(?<=\W[b-oq-z]\. )|(?<=\W[b-oq-z]\.))[A-Za-z](?P<c>\.)(?=\s)"
    r"|(?<![\w.])(?<!\b[Pp]lan )[A-HJ-Z](?P<d>\.)(?= [A-Z][a-zäöüéß]+)"
    r"(?! (?:The|We|He|She|It|They|You|But|And|Then|This|That|There|In|On|If)\b)"
    rf"|(?<![\w.]){_DAY}(?P<e>\.)(?=\s{MONTH_NAMES})"
    rf"|(?:{_AFTER_WORD}|(?<=\bjede[rmsn] ))\d{{1,2}}(?P<f>\.)(?=\s)"
    rf"|(?:{_AFTER_WORD}|(?<=[\-*•–] )){_DAY}\.(?:0?[1-9]|1[0-2])(?P<g>\.)(?=\s)|{_DAY}\.(?:0?[1-9]|1[0-2])(?P<h>\.)(?=\s[a-zäöüß])"
)
_ONE_DOT = "\u2024"


def unended(text: str) -> str:
    """`text`, of the same length, with another sign for each point that ends no sentence: `31. Oktober`, `Dr. Aigner`, `z. B.`"""
    if "." not in text:
        return text
    parts: list[str] = []
    at = 0
    for place in _suspicious_points(text):
        start = max(0, place - _AROUND)
        if any(start + found.start(found.lastgroup or 0) == place for found in _INSIDE.finditer(text[start : place + _AROUND])):
            parts += (text[at:place], _ONE_DOT)
            at = place + 1
    return "".join((*parts, text[at:])) if parts else text


def _suspicious_points(text: str) -> Iterator[int]:
    """Points behind a digit, a single letter or an abbreviation: no other has to be looked at."""
    at = text.find(".")
    while at >= 0:
        before = text[max(0, at - _LONGEST_ABBREVIATION) : at]
        if before[-1:].isdigit() or not before[-2:-1].isalpha() or _ABBREVIATED.search(before):
            yield at
        at = text.find(".", at + 1)


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
