"""Where a cited source says what is claimed of it."""

from pandora_dagster.stores.lineage.turn_lineage import cited_spans, claims_of

SOURCE = """## 0. User Query

Which chair is it?

## 5. Synthesis

Ordered: the chair Mesh One, order ORD-77298, 248.00 euros. It arrives on 12 September 2026.

The lamp is not part of the order because the invoice has to be one page.
"""
BODY = """- (2026-09-05) It arrives on 12 September 2026. [1]
- Something else entirely, said elsewhere. [2]
| 5 [1] | high | Ordered: the chair Mesh One, order ORD-77298, 248.00 euros. | A \\| B |

### Source References

- [1] `turns/turn_000005/context.md` - It arrives on a day that nobody said.
"""


def test_claims_are_what_stands_in_the_lines_that_cite() -> None:
    """Sentences and cells without dates of their turn, labels and short cells; the list of references is none."""
    assert claims_of(BODY, ["1"]) == ("It arrives on 12 September 2026.", "Ordered: the chair Mesh One, order ORD-77298, 248.00 euros.")
    assert claims_of(BODY, ["2"]) == ("Something else entirely, said elsewhere.",)
    assert claims_of(BODY, ["3"]) == ()


def test_words_that_stand_there_are_found_where_they_stand() -> None:
    """Verbatim, whatever blanks are between the words."""
    spans = cited_spans(("It  arrives on\n12 September 2026.",), SOURCE)
    assert [SOURCE[a:b] for a, b in spans] == ["It arrives on 12 September 2026."]


def test_other_words_lead_to_the_passage_that_has_most_of_them() -> None:
    """Only where one passage has enough of them."""
    (span,) = cited_spans(("no lamp in the order, as the invoice has one page",), SOURCE)
    assert SOURCE[slice(*span)].startswith("The lamp is not part")
    assert cited_spans(("a sofa in blue velvet for the hall",), SOURCE) == ()
    assert cited_spans((), SOURCE) == cited_spans(("anything at all here",), "") == ()


def test_a_claim_is_no_pattern() -> None:
    """What people wrote is looked for as it stands."""
    assert cited_spans(("(a+)+$ [x] .* ^", "\\d{3} \\1 (?P<x>)"), "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!") == ()
