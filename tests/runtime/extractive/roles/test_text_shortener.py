"""Role `compressor`: whole lines and sentences, the telling ones first."""

import pytest

FILL = "\n".join(f"The wind went over the quiet field again and nobody minded, said voice {w}{w}." for w in "abcdefghijklmnopqrstuvwxyz")
TELLING = ["Order QX7TTA costs $697.00 at https://shop.example/loq.", "Error: the card ending in 7447 was denied."]


@pytest.mark.parametrize("name", ["text_to_compress", "tool_result_to_compress", "research_to_compress", "prior_turn_to_compress"])
def test_facts_stay_and_prose_goes(ask, name: str) -> None:
    """Addresses, money, ids and errors are kept whole and in their order."""
    text = f"{FILL}\n\n{TELLING[0]}\n\n{FILL}\n\n{TELLING[1]}"
    short = ask("compressor", "", {name: text}, limit=120)
    assert short.find(TELLING[0]) == 0 < short.find(TELLING[1])


def test_section_0_is_kept_as_it_is(ask) -> None:
    """000 section 23: the query of a context document is never the part that goes."""
    text = f"## 0. User Query\n\nTell me about the calm field please\n\n## 2. Gathered Context\n\n{FILL}"
    assert "Tell me about the calm field please" in ask("compressor", "", {"context_to_compress": text}, limit=60)


def test_a_short_text_is_not_touched(ask) -> None:
    """What fits already is returned byte for byte, and so does compressing twice."""
    assert ask("compressor", "", {"text_to_compress": "a  b\n\n c"}) == "a  b\n\n c"


def test_words_of_the_query_are_kept(ask) -> None:
    """With a query, the sentence that speaks of it is kept."""
    text = f"{FILL}\n\nThe heron nests in the old willow.\n\n{FILL}"
    assert "The heron nests in the old willow." in ask("compressor", "where does the heron nest?", {"text_to_compress": text}, limit=40)
