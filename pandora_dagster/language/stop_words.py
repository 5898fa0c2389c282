"""Stop words by language, from the lists of stopwordsiso, and the function words among the English ones."""

from functools import cache

import stopwordsiso  # pyright: ignore[reportMissingTypeStubs]

_ENGLISH_FUNCTION_WORDS = """
a about above after again against all also am an and any are aren as at be because been before being below between both but by can
cannot could couldn did didn do does doesn doing don done down during each either else etc ever few for from further get gets getting
going got had hadn has hasn have haven having he hence her here hers herself him himself his how however i if in into is
isn it its itself just let like ll m many may me might mine more most much must mustn my myself neither no nor not now of off ok okay
on once one only onto or other ought our ours ourselves out over own per please quite rather re really s same shall shan she should
shouldn since so some such t than thanks that the their theirs them themselves then there these they this those though through thus to
too under until up upon us ve very via was wasn we well were weren what when where whether which while who whom whose why will with
within without would wouldn yes yet you your yours yourself yourselves
"""
"""Closed word classes: articles, pronouns, prepositions, conjunctions, question words, auxiliaries."""
_ASKING_WORDS = """
talk talked talking discuss discussed mention mentioned tell told say said says ask asked asking speak spoke remember recall know want
wanted need show give find look see help question answer earlier previous previously last conversation chat something anything exactly
long often ever already really time times thank hello hi hey
"""
ASKING_WORDS = frozenset(_ASKING_WORDS.split())
"""Words of a question that are about the asking, not about the matter."""


@cache
def stop_words(language: str) -> frozenset[str]:
    """The stop words of a language (ISO 639-1) in lower case; empty for "" and for unknown codes. The digits in some lists are none."""
    if not stopwordsiso.has_lang(language):  # pyright: ignore[reportUnknownMemberType]
        return frozenset()
    listed: set[str] = stopwordsiso.stopwords(language)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return frozenset(word for word in listed if not any(map(str.isdigit, word)))


@cache
def function_words(language: str) -> frozenset[str]:
    """Words without matter of their own: what a question asks for is none of them.

    The English list of stop words names things too (`computer`, `order`, `room`): without those the evidence that a search finds within
    1,000 tokens falls from 87.6 to 85.3 %. Of other languages the whole list.
    """
    return frozenset(_ENGLISH_FUNCTION_WORDS.split()) if language == "en" else stop_words(language)
