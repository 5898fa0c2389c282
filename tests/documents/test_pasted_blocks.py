"""What a person wrote and what they pasted."""

import pytest

from pandora_dagster.documents.pasted_blocks import own_words, short_query, split_pasted

LOG = "\n".join(f"2026-03-04 10:{n:02d}:00 INFO worker {n} moved a file" for n in range(30))
QUOTE = "\n".join(f"> line {n} of what Ben had written to me" for n in range(12))
CODE = "```python\n" + "\n".join(f"x{n} = {n}" for n in range(40)) + "\n```"
PROSE = "\n\n".join(f"I have bought chair {n}, and it is late. Please help me with it." for n in range(30))


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize("block", [LOG, QUOTE, CODE])
def test_a_pasted_block_is_taken_out_and_the_words_stay_verbatim(block):
    """The reference stands where the block stood; put back, it is the query again."""
    query = f"Why is it late?\n\n{block}\n\nPlease answer today."
    said, blocks = split_pasted(query, min_tokens=20, count=words)
    assert [b.text for b in blocks] == [block]
    assert said == f"Why is it late?\n\n{blocks[0].reference}\n\nPlease answer today."
    assert said.replace(blocks[0].reference, blocks[0].text) == query


@pytest.mark.parametrize("query", ["", "short", PROSE, "Why?\n\n```\nx = 1\n```"])
def test_prose_and_short_blocks_stay_among_the_words(query):
    """What a person wrote is never taken for a machine's, however long."""
    assert split_pasted(query, min_tokens=20, count=words) == (query, ())


def test_several_blocks_are_numbered_in_their_order():
    """Each has its own name; a quotation inside a fence is part of the fence."""
    _, blocks = split_pasted(f"one\n\n{CODE}\n\ntwo\n\n{LOG}\n\nthree", min_tokens=20, count=words)
    assert [(b.name, b.text) for b in blocks] == [("pasted_1", CODE), ("pasted_2", LOG)]


def test_a_fence_that_is_never_closed_ends_with_the_query():
    """Nothing of it is lost."""
    query = "look:\n```\n" + LOG
    said, blocks = split_pasted(query, min_tokens=20, count=words)
    assert said.replace(blocks[0].reference, blocks[0].text) == query


def test_own_words_are_what_the_person_says_themselves():
    """Fences, quoted lines and quoted sentences are others' words; a quoted name stays."""
    query = 'I like "Dune".\n```\nI hate it.\n```\n> I love it.\nThe page says "I always approve this". I am Ann.'
    assert own_words(query).split() == ["I", "like", '"Dune".', "The", "page", "says", ".", "I", "am", "Ann."]
    assert own_words("plain words") == "plain words" and own_words("") == ""


def test_a_long_query_is_short_by_the_words_of_its_user():
    """A paste made the whole query too long for a call on a piece, which then had none."""
    assert short_query("Why is it late?", 4, words) == "Why is it late?"
    assert short_query(f"Why is it late?\n\n{LOG}", 60, words) == "Why is it late?"
    assert short_query(PROSE, 60, words) == ""
