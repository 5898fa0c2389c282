"""Words that carry structure rather than content, by word class, and where sentences end. Closed classes only, made from no data set."""

import re
from functools import lru_cache

from pandora_dagster.compression.words import european_forms
from pandora_dagster.compression.words.normalization import words
from pandora_dagster.language.sentences import mask_inner_points


def word_set(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


ARTICLES = word_set("a an the")
PRONOUNS = word_set(
    "i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours ourselves "
    "they them their theirs themselves this that these those who whom whose which what someone anyone everyone one ones something "
    "anything everything nothing somebody anybody everybody nobody"
)
AUXILIARIES = word_set(
    "am is are was were be been being do does did doing done have has had having will would shall should can could may might must "
    "get gets got getting let lets im ive id ill youre youve youll youd hes shes weve were theyre theyve thats theres heres whats "
    "hows whos wheres its isnt arent wasnt werent dont doesnt didnt wont wouldnt cant couldnt shouldnt hasnt havent hadnt"
)
PREPOSITIONS = word_set(
    "of to in on at for with by from as about into over after before under between through during up out off down around near since "
    "until till against among within without toward towards upon onto across along behind beyond like per via"
)
CONJUNCTIONS = word_set("and or but so because while although though if than then when where why how whether unless nor yet")
ADVERBS = word_set(
    "just really very too also still even much more most some any all both each every few many other another such only own same again "
    "ever always now here there once well back away maybe perhaps quite rather pretty almost already actually definitely absolutely "
    "totally super completely truly certainly probably especially lately recently soon"
)
DEEDS = word_set(
    "go goes going went gone come comes came coming make makes made making take takes took taking keep keeps kept keeping want wants "
    "wanted need needs needed try tries tried trying give gives gave put gonna gotta wanna"
)
"""Light verbs of doing and willing: without them nobody can tell who does what."""
REMARKS = word_set(
    "know knows knew think thinks thought see sees saw seeing say says said tell tells told hear hears heard look looks looked looking "
    "feel feels felt feeling seem seems seemed sound sounds sounded mean means meant happen happens happened hope hoping guess"
)
LIGHT_VERBS = DEEDS | REMARKS
FILLERS = word_set(
    "oh wow hey hi hello yeah yes yep yup no nope sure okay ok haha hahaha lol um uh uhm mm hmm mmm huh ah please thanks thank thx bye "
    "goodbye welcome great good nice cool awesome amazing wonderful fantastic lovely glad happy excited exciting congrats "
    "congratulations sorry wait right thing things stuff way lot lots bit kind sort type love loved loving appreciate interesting "
    "incredible inspiring perfect proud"
)
NEGATIONS = word_set(
    "no not never none neither nor without cannot cant dont doesnt didnt wont wouldnt isnt arent wasnt werent hasnt havent shouldnt couldnt"
) | word_set(european_forms.NEGATIONS)

RISING = word_set("rise rises rose risen rising increase increases increased increasing grow grows grew grown growing gain gained climbed")
FALLING = word_set("fall falls fell fallen falling decrease decreases decreased decreasing drop drops dropped shrank shrunk declined lost")

STOP_WORDS = ARTICLES | PRONOUNS | AUXILIARIES | PREPOSITIONS | CONJUNCTIONS | word_set("no not")
FUNCTION_WORDS = STOP_WORDS | ADVERBS | LIGHT_VERBS | FILLERS
OPENERS = FUNCTION_WORDS | word_set(
    "here however since unfortunately additionally finally first second next once note error sure certainly would could regarding "
    "based given also before after let kindly thank"
)
"""Words that begin sentences with a capital and name nothing."""

_SENTENCE_END = re.compile(
    r"(?<=[.!?。！？؟])(?:(?<!؟)(?<!^\d\.)(?<!^\d\d\.)(?<!\n\d\.)(?<!\n\d\d\.)([\"')\]]*)\s+(?=[\"'(*#\[A-Z\d\u00c0-\u00de¿¡„«])"
    r"|(?<=[。！？؟]))|\n+"
)
"""A number before its item (`1. Change of plan`) ends nothing."""
_STATEMENT_BORDER = r"(?<=[.!?;])\s+|(?<=[\u3002\uff01\uff1f\uff1b\u061f\u06d4])\s*"
"""Between two statements of a line; full-width ends need no blank behind them."""
_BORDER, _BORDER_OR_BAR = re.compile(_STATEMENT_BORDER), re.compile(rf"{_STATEMENT_BORDER}|\|")
_SUFFIXES = ("ing", "ies", "ed", "es", "s")
_KNOWN = 16_384
"""Words whose stems are remembered: few words are most of a text."""


@lru_cache(_KNOWN)
def stem(word: str) -> str:
    """`word` without a common English ending; at least three letters stay."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


def content_stems(text: str) -> list[str]:
    """Stems of the words of `text` that are no stop words, in order."""
    return [stem(w) for w in words(text) if w not in STOP_WORDS]


@lru_cache(_KNOWN)
def is_negation(word: str) -> bool:
    """Whether a word turns what it stands in around: `not`, `never`, `without`, `don't`."""
    lowered = word.lower().replace("\u2019", "'")
    return lowered.endswith("n't") or lowered.replace("'", "").strip(".,;:!?") in NEGATIONS


def sentences(text: str) -> list[str]:
    """Sentences and lines of `text`, trimmed, none empty."""
    ends = [(m.start() if m.group(1) is None else m.end(1), m.end()) for m in _SENTENCE_END.finditer(mask_inner_points(text))]
    starts = [0, *(after for _, after in ends)]
    return [s for start, (end, _) in zip(starts, [*ends, (len(text), 0)], strict=True) if (s := text[start:end].strip())]


def clauses(line: str, *, at_bars: bool = False) -> list[str]:
    """What a line says, one statement after the other; of a table's row each cell where `at_bars`."""
    borders = list((_BORDER_OR_BAR if at_bars else _BORDER).finditer(mask_inner_points(line)))
    starts = [0, *(border.end() for border in borders)]
    ends = [*(border.start() for border in borders), len(line)]
    return [line[start:end] for start, end in zip(starts, ends, strict=True)]
