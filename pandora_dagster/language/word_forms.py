"""Irregular forms of English words with their base forms, spelling variants, and nouns that are counted.

A stemmer removes endings, so it does not relate `went` to `go` or `children` to `child`.
"""

import re
from unicodedata import decomposition

# One spelling for words that are written in several: with accents and without, umlauts typed as two letters.

_UNDECOMPOSED_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})
_TYPED_UMLAUT = re.compile(r"(?<![aeouq])([aou])e(?=[b-df-hj-np-tv-z])")
"""Two letters that may be an umlaut: not in `queue` or `blue`."""


def unaccented(word: str) -> str:
    """A lower-case word without accents on its Latin letters: `krüger` is `kruger`; other scripts are unchanged."""
    return word if word.isascii() else "".join(map(_base_letter, word.translate(_UNDECOMPOSED_LETTERS)))


def umlauts_undone(word: str) -> str:
    """`krueger` as `kruger`; a word without such a pair of letters unchanged."""
    return _TYPED_UMLAUT.sub(r"\1", word) if "e" in word else word


def _base_letter(sign: str) -> str:
    """The letter under the accents of a composed Latin letter."""
    while not sign.isascii() and (parts := decomposition(sign)) and not parts.startswith("<"):
        base = chr(int(parts.split()[0], 16))
        if not (base.isascii() or decomposition(base)):
            break
        sign = base
    return sign


_IRREGULAR_FORMS = """
arise arose arisen; awake awoke awoken; bear bore borne; beat beaten; become became; begin began begun; bend bent; bind bound;
bite bit bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring brought; build built; burn burnt; buy bought;
catch caught; choose chose chosen; cling clung; come came; creep crept; deal dealt; dig dug; draw drew drawn; dream dreamt;
drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled;
fling flung; fly flew flown; forbid forbade forbidden; forget forgot forgotten; forgive forgave forgiven; freeze froze frozen;
give gave given; grow grew grown; hang hung; hear heard; hide hid hidden; hold held; keep kept; kneel knelt; know knew known;
lay laid; lead led; leap leapt; learn learnt; leave left; lend lent; lie lain; light lit; lose lost; make made; mean meant; meet met;
overcome overcame; pay paid; ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought;
sell sold; send sent; sew sewn; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung;
sink sank sunk; sit sat; sleep slept; slide slid; speak spoke spoken; spend spent; spin spun; spring sprang sprung; stand stood;
steal stole stolen; stick stuck; sting stung; strike struck; strive strove striven; swear swore sworn; sweep swept; swell swollen;
swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told; think thought; throw threw thrown;
understand understood; wake woke woken; wear wore worn; weave wove woven; weep wept; win won; withdraw withdrew withdrawn;
write wrote written; man men; woman women; child children; foot feet; tooth teeth; mouse mice; goose geese; person people;
life lives; wife wives; knife knives; leaf leaves; shelf shelves; half halves; wolf wolves; self selves; loaf loaves; thief thieves
"""
IRREGULAR_BASES: dict[str, str] = {form: line.split()[0] for line in _IRREGULAR_FORMS.split(";") for form in line.split()[1:]}
"""Irregular form -> the word it belongs to. Forms that are as often a word of their own (`bound`, `ground`) are few and kept."""


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun: `1 turn`, `7 turns`, `1,200 turns`. `plural`: where it is not the singular with an s: `queries`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
