"""Which passage answers a question best."""

from dataclasses import replace

from pandora_dagster.runtime.extractive.evidence.citation_labels import Labels
from pandora_dagster.runtime.extractive.evidence.passage_ranking import rank_passages
from pandora_dagster.runtime.extractive.evidence.questions import read_question
from pandora_dagster.runtime.extractive.evidence.source_passages import Passage, PassageReader

PURCHASE = "We bought the grey sofa for 610 euros."
REFUND = "After the refund the sofa cost you 540 euros."


def test_a_passage_with_all_that_is_asked_precedes_one_of_a_better_source() -> None:
    """An amount is what `cost` asks for, so the purchase lacks nothing; the refund, of the turn that retrieval ranks first, lacks `buy`."""
    reader = PassageReader(Labels(()))
    passages = [
        reader.line(text, replace(Passage("", None, ()), source=f"turn {rank}", turn=rank, rank=rank))
        for rank, text in enumerate((REFUND, "The sofa arrives on Friday.", PURCHASE))
    ]
    asked = read_question("Which sofa was bought, and what did it cost?")
    assert [p.text for _, p in rank_passages(passages, asked)][:2] == [PURCHASE, REFUND]
