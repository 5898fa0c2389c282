"""Stop words by language, and detection of a text's language by them.

Closed word classes only: articles, pronouns, prepositions, conjunctions, question words, auxiliaries.
"""

from collections.abc import Set as AbstractSet
from functools import cache

import stopwordsiso  # pyright: ignore[reportMissingTypeStubs]


@cache
def stop_words(language: str) -> frozenset[str]:
    """The stop words of a language (ISO 639-1) in lower case; empty for "" and for unknown codes."""
    known = stopwordsiso.has_lang(language)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return frozenset(stopwordsiso.stopwords(language)) if known else frozenset()  # pyright: ignore[reportUnknownMemberType]


_LIST = """
a about above after again against all also am an and any are aren as at be because been before being below between both but by can
cannot could couldn did didn do does doesn doing don done down during each either else etc ever few for from further get gets getting
go goes going gone got had hadn has hasn have haven having he hence her here hers herself him himself his how however i if in into is
isn it its itself just let like ll m many may me might mine more most much must mustn my myself neither no nor not now of off ok okay
on once one only onto or other ought our ours ourselves out over own per please quite rather re really s same shall shan she should
shouldn since so some such t than thanks that the their theirs them themselves then there these they this those though through thus to
too under until up upon us ve very via was wasn we well were weren what when where whether which while who whom whose why will with
within without would wouldn yes yet you your yours yourself yourselves
"""
STOP_WORDS: frozenset[str] = frozenset(_LIST.split())
"""`may` stands here as the verb; as a month it is found by `text.dates`."""

_GERMAN = """
der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines ich du er sie es wir ihr mich dich ihn uns
euch mir dir ihm ihnen sich mein meine meinen meinem meiner meines dein deine deinen deinem deiner deines sein seine seinen seinem seiner
seines ihre ihren ihrem ihrer ihres unser unsere unseren unserem unserer unseres euer eure euren eurem eurer dieser diese dieses diesen
diesem jener jene jenes jenen jenem jeder jede jedes jeden jedem man wer wen wem wessen was wann wo wohin woher wie warum wieso weshalb
welcher welche welches welchen welchem wieviel wieviele viel viele vielen vieler und oder aber sondern denn weil dass daß ob wenn als falls
obwohl damit sowie in im an am auf aus bei beim mit nach von vom vor zu zum zur über unter für durch gegen ohne um bis ab seit während
wegen zwischen hinter neben ist sind war waren bin bist seid wird werden wurde wurden worden würde würden hat habe haben hast habt hatte
hatten hätte hätten kann kannst können könnt konnte konnten könnte könnten muss musst müssen musste mussten soll sollen sollte sollten will
wollen wollte wollten darf dürfen durfte möchte möchten mag nicht auch nur noch schon sehr so da dort hier dann also doch mal denn etwa
eben ja nein
"""
_FRENCH = """
le la les l un une des du de d au aux je j tu il elle on nous vous ils elles me m te t se s lui leur leurs mon ma mes ton ta tes son sa ses
notre nos votre vos ce c cet cette ces ça cela qui que qu quoi dont où quand comment pourquoi combien quel quelle quels quelles et ou mais
donc car ni si lorsque puisque comme à dans en par pour sur sous avec sans chez vers entre depuis pendant avant après est es suis sommes
êtes sont était étaient été être sera seront ai as a avons avez ont avait avaient eu avoir n ne pas plus y très aussi
"""
_SPANISH = """
el la los las lo un una unos unas del de al yo tú él ella ello nosotros vosotros ellos ellas me te se nos os le les mi mis tu tus su sus
nuestro nuestra nuestros nuestras este esta estos estas ese esa esos esas aquel aquella que qué quién quiénes cuál cuáles cuándo cuánto
cuánta cuántos cuántas cómo dónde cuando donde como porque y e o u pero sino si a ante con contra desde en entre hacia hasta para por según
sin sobre tras es son soy eres somos era eran fue fueron ser está están estoy estaba estaban he ha has hemos han había habían haber no ya
muy también
"""
_ITALIAN = """
il lo la i gli le l un uno una del dello della dei degli delle al allo alla ai agli alle dal dalla dai dalle nel nella nei nelle sul sulla
sui sulle di a da in con su per tra fra io tu lui lei noi voi loro mi ti si ci vi me te mio mia miei mie tuo tua tuoi tue suo sua suoi sue
nostro nostra nostri nostre questo questa questi queste quello quella quelli quelle che chi cui cosa quando dove come perché quale quali
quanto quanta quanti quante e ed o ma se è sono sei siamo siete era erano stato stata essere ho hai ha abbiamo avete hanno aveva avevano
avere non più già anche molto
"""
_TYPED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_LISTS = {"german": _GERMAN, "french": _FRENCH, "spanish": _SPANISH, "italian": _ITALIAN}
FOREIGN_STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(word for written in words.split() for word in (written, written.translate(_TYPED)))
    for language, words in _LISTS.items()
}
"""Language, as the stemmers name it -> its function words; umlauts as they are typed without such keys too."""
_EVERY = frozenset[str]().union(*FOREIGN_STOP_WORDS.values())
_ALSO_ENGLISH = """
ai ante as avant bin car chi come comment con contra cosa dal dei del della den der des di die dove du el era este fin ha hat he la leur
lei li lo los man mag mes mi mia mis no on or os par pendant per plus pour sans se ser sera si sin sobre son sue sui sur ton tu tue un uno
vers via war wand was will falls also sole las le les ne et sa sta
"""
NON_ENGLISH_STOP_WORDS = _EVERY - frozenset(_ALSO_ENGLISH.split())
"""Function words of those languages that mean nothing in English: they say nothing in a text of whatever language."""
_FEWEST = 2
"""One such word may be a word of another language (`die`, `hat`); two of them and fewer English ones are a sentence."""


def language_of(words: AbstractSet[str]) -> str:
    """The language of `FOREIGN` of a text of these lower-cased words; "" for English and where it is unknown."""
    if len(words & _EVERY) < _FEWEST:
        return ""
    best, most = "", _FEWEST - 1
    for language, known in FOREIGN_STOP_WORDS.items():
        own = len(words & known - STOP_WORDS)
        if own > max(most, len(words & STOP_WORDS - known)):
            best, most = language, own
    return best
