"""A text within a number of characters, in whole words."""

from collections.abc import Collection, Sequence


def words_within(words: Sequence[str], limit: int, *, first: Collection[str] = ()) -> str:
    """The words, or where they are over `limit` characters as many different ones as fit, in their order.

    Words of `first` are chosen before the others; a word that does not fit is left out whole.
    """
    whole = " ".join(words)
    if len(whole) <= limit:
        return whole
    unique = tuple(dict.fromkeys(words))
    chosen: set[str] = set()
    room = limit + 1
    for word in sorted(unique, key=lambda word: word not in first):
        if len(word) < room:
            chosen.add(word)
            room -= len(word) + 1
    return " ".join(word for word in unique if word in chosen)
