"""Speed: against LexRank, linear in the text, and next to nothing for a text within its budget."""

import time
from collections.abc import Callable

from compression_tasks.literal import Tokens

_SENTENCE_SHARE = 0.2


def seconds(run: Callable[[], object], *, times: int = 3) -> float:
    """The best of a few runs, in processor time: other processes do not lengthen it."""
    best = float("inf")
    for _ in range(times):
        begin = time.process_time()
        run()
        best = min(best, time.process_time() - begin)
    return best


def of_length(text: str, tokens: int, counter: Tokens) -> str:
    """A text of about so many tokens, whole lines, repeated with numbered lines where the original is too short."""
    lines = text.split("\n")
    found: list[str] = []
    used = round_ = 0
    while used < tokens:
        for line in lines:
            found.append(line if not round_ else f"{line} (round {round_})" if line.strip() else line)
            used += counter.count(found[-1]) + 1
            if used >= tokens:
                break
        round_ += 1
    return "\n".join(found)


def lexrank(text: str) -> Callable[[], object] | None:
    """sumy's LexRank with sentencex as its tokenizer; None where sumy is not installed."""
    try:
        from sentencex import segment
        from sumy.nlp.stemmers import Stemmer
        from sumy.parsers.plaintext import PlaintextParser
        from sumy.summarizers.lex_rank import LexRankSummarizer
    except ImportError:
        return None

    class Sentences:
        """What sumy asks of a tokenizer."""

        def to_sentences(self, paragraph: str) -> tuple[str, ...]:
            return tuple(segment("en", paragraph))

        def to_words(self, sentence: str) -> tuple[str, ...]:
            return tuple(sentence.split())

    def run() -> object:
        parser = PlaintextParser.from_string(text, Sentences())
        return LexRankSummarizer(Stemmer("english"))(parser.document, max(1, int(len(text.split("\n")) * _SENTENCE_SHARE)))

    return run
