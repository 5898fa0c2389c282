"""What a sentence does, by the closed-class words of its language: forbid, except, decide, correct, ask ...

The one notion of force, negation and correction. Another language than those listed has no cues but signs.
"""

import re
from enum import StrEnum
from functools import cache


class Cue(StrEnum):
    """A mark of what a sentence does."""

    FORCE = "force"
    NEGATION = "negation"
    EXCEPTION = "exception"
    DECISION = "decision"
    CAUSE = "cause"
    CORRECTION = "correction"
    ERROR = "error"
    TASK = "task"
    COURTESY = "courtesy"
    EXAMPLE = "example"
    QUESTION = "question"


_CUE_WORDS: dict[Cue, dict[str, str]] = {
    Cue.FORCE: {
        "en": "must|shall|should|need(?:s|ed)? to|ha(?:s|ve) to|required?|only|always|at (?:most|least)|mandatory|allowed|forbidden",
        "de": "muss|müssen|soll(?:en|te)?|darf|dürfen|nur|immer|mindestens|höchstens|pflicht",
        "fr": "doit|doivent|faut|devez|devons|toujours|seulement|uniquement|obligatoire|interdit",
        "es": "debe[ns]?|hay que|tiene que|siempre|solo|sólo|obligatori[oa]|prohibid[oa]",
        "it": "deve|devono|bisogna|sempre|solo|obbligatori[oa]|vietat[oa]",
        "nl": "moet(?:en)?|mag|mogen|altijd|alleen|verplicht|verboden",
        "pt": "deve[m]?|precisa|sempre|só|somente|obrigatóri[oa]|proibid[oa]",
        "pl": "musi|muszą|należy|trzeba|tylko|zawsze|wolno",
    },
    Cue.NEGATION: {
        "en": r"no|not|never|none|nobody|nothing|nor|neither|cannot|without|\w+n['’]t",
        "de": "nicht|keine?[nmrs]?|nie|niemals|niemand|nichts|ohne|weder",
        "fr": "pas|jamais|sans|aucune?|rien|personne ne|ni",
        "es": "no|nunca|jamás|ningún|ninguna|nadie|nada|sin|ni|tampoco",
        "it": "non|no|mai|senza|nessun[oa]?|niente|nulla|né",
        "nl": "niet|geen|nooit|zonder|niemand|niets",
        "pt": "não|nunca|jamais|sem|nenhuma?|ninguém|nada|nem",
        "pl": "nie|nigdy|bez|nikt|nic|żaden|żadna|ani",
        "sv": "inte|ej|aldrig|utan|ingen|inget|inga",
    },
    Cue.EXCEPTION: {
        "en": "unless|except(?:ion)?|exempt|only if|if|until|otherwise|provided",
        "de": "außer|ausgenommen|sofern|falls|wenn|bis|sonst|es sei denn",
        "fr": "sauf|excepté|si|jusqu['’à]?|sinon|à moins",
        "es": "salvo|excepto|si|hasta|a menos|si no",
        "it": "tranne|eccetto|salvo|se|fino|altrimenti",
        "nl": "tenzij|behalve|als|tot|anders",
        "pt": "exceto|salvo|se|até|caso contrário",
        "pl": "chyba że|oprócz|jeśli|jeżeli|dopóki|inaczej",
    },
    Cue.DECISION: {
        "en": r"decid\w*|decision|agree[ds]?|approved?|conclu\w*|resolved|accepted|rejected|chosen?|consensus|will|going to|let['’]s",
        "de": r"beschl\w*|entschied\w*|entscheidung|vereinbart|einig\w*|genehmigt|abgelehnt|wird|werden",
        "fr": r"décid\w*|décision|convenu|accord|approuvé\w*|refusé\w*|va|vont",
        "es": r"decidi\w*|decisión|acord\w*|aprobad\w*|rechazad\w*|va a|vamos",
        "it": r"decis\w*|accordo|approvat\w*|respint\w*",
        "nl": r"beslo\w*|akkoord|afgesproken|goedgekeurd|afgewezen|gaan",
        "pt": r"decidi\w*|decisão|acordo|aprovad\w*|rejeitad\w*|ficou",
        "pl": r"postanowi\w*|decyzj\w*|ustal\w*|zatwierdz\w*|odrzuc\w*",
    },
    Cue.CAUSE: {
        "en": r"because|caus\w*|reasons?|due to|since|therefore|so that|hence|result\w*",
        "de": "weil|wegen|grund|ursache|deshalb|daher|darum",
        "fr": "parce|cause|raison|donc|car",
        "es": "porque|causa|motivo|por eso|debido",
        "it": "perché|causa|motivo|quindi|dovuto",
        "nl": "omdat|oorzaak|reden|daarom|wegens",
        "pt": "porque|causa|motivo|portanto|devido",
        "pl": "ponieważ|bo|przyczyn[aęy]|dlatego|powód",
    },
    Cue.CORRECTION: {
        "en": r"correct(?:ion|ed)|actually|instead|no longer|in fact|rather|sorry|wrong|moved|updated?|changed?|but|however",
        "de": "korrektur|doch|stattdessen|sondern|jedoch|aber|geändert|nicht mehr|ungültig",
        "fr": "mais|plutôt|finalement|en fait|rectificatif|ne .{1,20} plus",
        "es": "pero|sino|en realidad|corrección|ya no|finalmente",
        "it": "ma|però|invece|in realtà|correzione|non più",
        "nl": "maar|toch|eigenlijk|correctie|niet meer|gewijzigd",
        "pt": "mas|porém|na verdade|correção|já não",
        "pl": "ale|jednak|zamiast|właściwie|poprawka|już nie",
    },
    Cue.ERROR: {
        "en": r"errors?|fail\w*|exceptions?|crash\w*|fatal|warn\w*|timeouts?|refused|denied|broken|bugs?|outages?|danger\w*|risk\w*",
        "de": r"fehler\w*|warnung|achtung|störung|gefahr|defekt\w*",
        "fr": "erreurs?|panne|attention|danger",
        "es": "errore?s?|fallos?|cuidado|peligro",
        "it": "errore|errori|guasto|attenzione|pericolo",
        "nl": r"fout\w*|storing|waarschuwing|gevaar",
        "pt": "erros?|falhas?|cuidado|perigo",
        "pl": r"błąd|błęd\w*|awaria|uwaga|ostrzeżenie",
    },
    Cue.TASK: {
        "en": r"todo|action|deadline|by (?:mon|tues|wednes|thurs|fri|satur|sun|tomorrow|end|noon|\d)\w*|due|please|assigned|owner",
        "de": r"bis (?:mon|diens|mitt|donn|frei|zum|\d)\w*|bitte|zuständig|frist|aufgabe",
        "fr": "avant le|merci de|délai|tâche|échéance",
        "es": "antes del?|por favor|plazo|tarea",
        "it": "entro|prego|per favore|scadenza",
        "nl": "vóór|uiterlijk|graag|taak|termijn",
        "pt": "até|por favor|prazo|tarefa",
        "pl": "do dnia|proszę|termin|zadanie",
    },
    Cue.COURTESY: {
        "en": "thanks?|thank you|hello|hi|hey|dear|regards|welcome|great|sure|okay|ok|cheers",
        "de": "danke|hallo|grüße|gruß|gerne?|liebe[rs]?",
        "fr": "bonjour|merci|cordialement|salut|de rien",
        "es": "hola|gracias|saludos|de nada",
        "it": "ciao|grazie|saluti",
        "nl": r"bedankt|hoi|groet\w*|dank",
        "pt": r"olá|obrigad\w*",
        "pl": "cześć|dziękuję|dzięki|pozdrawiam",
    },
    Cue.EXAMPLE: {
        "en": r"e\.g|for example|for instance|such as|like|maybe|perhaps",
        "de": r"z\. ?b|beispiel\w*|vielleicht",
        "fr": "par exemple|peut-être",
        "es": "por ejemplo|quizás?",
        "it": "per esempio|ad esempio|forse",
        "nl": "bijvoorbeeld|misschien",
        "pt": "por exemplo|talvez",
        "pl": "na przykład|np|może",
    },
}
_QUESTION_END = re.compile(r"(?:[?？\u061f]|か[。．]?)[\"'”’»)*_\s]*$")


@cache
def _pattern(cue: Cue, language: str) -> re.Pattern[str]:
    """The words of the language with the English ones, which occur in texts of all languages; of all languages where none is known."""
    lists = _CUE_WORDS[cue]
    chosen = [lists["en"], *([lists[language]] if language in lists and language != "en" else [] if language else list(lists.values()))]
    return re.compile(rf"(?<![\w'’])(?:{'|'.join(chosen)})(?!\w)", re.IGNORECASE)


def cues(text: str, language: str = "") -> frozenset[Cue]:
    """The cues in `text`."""
    found = {cue for cue in _CUE_WORDS if _pattern(cue, language).search(text)}
    return frozenset(found | {Cue.QUESTION} if ends_as_question(text) else found)


def ends_as_question(text: str) -> bool:
    """Whether `text` ends in a question mark of any script, or in the Japanese particle of a question."""
    return bool(_QUESTION_END.search(text))


def negations(text: str) -> int:
    """How many negations occur in `text`, in any of the languages."""
    return len(_pattern(Cue.NEGATION, "").findall(text))


_PERSONS = re.compile(
    r"\b(?:i|me|my|we|us|our|you|your|yours|ich|mir|mich|mein\w*|wir|uns|unser\w*|du|dir|dich|dein\w*|sie|ihnen|ihr\w*"
    r"|je|j|moi|mon|ma|mes|nous|notre|nos|tu|toi|te|vous|votre|vos|yo|mi|mí|nosotr[oa]s|nuestr[oa]s?|tú|ti|usted(?:es)?|vosotr[oa]s"
    r"|io|noi|voi|nostr[oaei]|vostr[oaei]|ik|mij|mijn|wij|ons|onze|jij|jou|jouw|uw|eu|nós|vocês?|ja|mnie|nas|ciebie|wy|jag|mig|vi|oss|dig)\b",
    re.IGNORECASE,
)
"""Personal pronouns of the first and second person, and of politeness."""


def addresses_reader(text: str) -> bool:
    """Whether a sentence speaks of its writer or to its reader, in any of the languages."""
    return _PERSONS.search(text) is not None
