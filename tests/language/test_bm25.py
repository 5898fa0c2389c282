"""BM25 ranks by rare keys, saturates, and knows nothing of keys that no document has."""

from pandora_dagster.language.bm25 import Bm25

DOCUMENTS = [
    ["ferry", "time"],
    ["ferry", "ticket", "price"],
    ["soup"],
    ["ferry", "ferry", "ferry", "ferry", "rope", "lamp", "coat", "tent"],
]


def test_a_rare_key_counts_more_than_a_common_one() -> None:
    """The document with both is first."""
    ranking = Bm25(DOCUMENTS)
    scores = ranking.scores(["ferry", "ticket"])
    assert ranking.idf("ticket") > ranking.idf("ferry") > 0 == ranking.idf("plane")
    assert max(scores) == scores[1] and scores[2] == 0


def test_repeats_saturate_and_a_repeated_query_key_counts_once() -> None:
    """Four hits are less than four times one."""
    ranking = Bm25(DOCUMENTS)
    assert ranking.saturated(4, 3) < 4 * ranking.saturated(1, 3)
    assert ranking.scores(["ferry", "ferry"]) == ranking.scores(["ferry"])


def test_no_documents_have_no_scores() -> None:
    """Nor does anything raise."""
    assert Bm25([]).scores(["a"]) == []
