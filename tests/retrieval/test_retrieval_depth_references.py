"""Which queries refer to earlier conversation, by their words alone."""

import pytest

from pandora_dagster.retrieval.retrieval_depth import find_reference


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("What did I say about the kitchen?", "earlier"),
        ("Which lamp did you recommend?", "earlier"),
        ("Let's go back to the hotels.", "earlier"),
        ("Remind me where the meeting is.", "earlier"),
        ("As you said, blue is better", "earlier"),
        ("Is it the one from last time?", "earlier"),
        ("As agreed, please cancel it", "agreement"),
        ("You promised to send the list", "agreement"),
        ("Tell me more about the second option.", "order"),
        ("What does option 2 cost?", "order"),
        ("The latter, please", "order"),
        ("Do it as before", "same"),
        ("I'll have the usual", "same"),
        ("Same size as last week", "same"),
        ("What does the rug number 9 cost?", None),
        ("When was the second world war?", None),
        ("How do I list files?", None),
        ("What is the capital of France?", None),
        ("Recommend me a laptop", None),
        ("", None),
    ],
)
def test_references(query, kind):
    """What was said, agreed, listed or done before; a plain question is none."""
    found = find_reference(query)
    assert (found.kind if found else None) == kind
    assert found is None or found.words in query
