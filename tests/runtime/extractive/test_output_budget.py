"""Answers within the tokens that a call may write."""

import pytest

from pandora_dagster.runtime.extractive.output_budget import fit_pieces


class _Letters:
    def count(self, text: str) -> int:
        return len(text)


@pytest.mark.parametrize(
    ("pieces", "ends", "limit", "expected"),
    [
        (("aa", "bb", "cc"), "...", 6, "aabbcc"),
        (("aa", "bbbbbb", "cc"), "...", 4, "aacc"),
        (("aaaaaa", "bb"), "..", 4, "bb"),
        (("aa", "bbbbbb", "cc"), ".ee", 4, "aa"),
        (("aa", "bbbbbb", "cc", "dd"), ".ee.", 4, "aadd"),
        (("aa",), ".", 1, ""),
        ((), "", 5, ""),
    ],
)
def test_whole_pieces_go_in_by_their_order(pieces: tuple[str, ...], ends: str, limit: int, expected: str) -> None:
    """One without room is passed over; of a kind that ends there, those that follow stay out too."""
    made = fit_pieces(lambda places: "".join(pieces[p] for p in sorted(places)), [e == "e" for e in ends], limit, _Letters())
    assert made == expected
