"""A sentence of the source with one thing other in it is found out; the same reworded is left alone."""

import pytest

from pandora_dagster.compression import Outcome, build_ledger, verify

_WRONG = (Outcome.MUTATED, Outcome.INVENTED)
BESIDE = "Another matter is the roof. The shed in Ulm was not sold. The barn was painted green."


def _wrong(source: str, said: str) -> list[tuple[str, str]]:
    text = f"{source}\n{BESIDE}"
    return [(v.evidence or v.text, v.reason) for v in verify(build_ledger(text), text, said).of(*_WRONG)]


@pytest.mark.parametrize(
    ("source", "lie"),
    [
        ("The welder has not arrived yet.", "The welder has arrived."),
        ("The welder has arrived.", "The welder has not arrived."),
        ("The ferry still doesn't stop in Lund.", "The ferry stops in Lund."),
        ("Der Vorschuss wird nicht verrechnet.", "Der Vorschuss wird verrechnet."),
        ("Der Vorschuss wird verrechnet.", "Der Vorschuss wird noch nicht verrechnet."),
        ("The young welder has arrived.", "Nobody has arrived."),
        ("Der Vorschuss wird in diesem Jahr nicht verrechnet.", "Der Vorschuss wird verrechnet."),
        ("验收没有通过之前不得发货。", "验收通过之前可以发货。"),
        ("样品已经寄出。", "样品还没有寄出。"),
        ("合同包括运费。", "合同不包括运费。"),
        ("この部品は出荷されていません。", "この部品は出荷されています。"),
    ],
)
def test_a_denial_more_or_less_is_found_out(source: str, lie: str) -> None:
    assert _wrong(source, lie)


@pytest.mark.parametrize(
    ("source", "lie"),
    [
        ("Orla wanted a new kiln for the pottery; this was granted.", "Orla wanted a new kiln for the pottery; this was refused."),
        ("All members but Vik Rowing have paid the fee.", "All members and Vik Rowing have paid the fee."),
        ("All members but Vik Rowing have paid the fee.", "All members have paid the fee."),
        ("All helpers got the bonus except Tom this year.", "All helpers got the bonus this year."),
        ("Orla sends the kiln to Vik by 12 June.", "Orla sends the kiln to Vik on 12 June."),
        ("The lamp Nor 4 weighs 310 grams. The lamp Nor 40 weighs 415 grams.", "The lamp Nor 4 weighs 415 grams."),
        ("The lamp Nor 4 weighs 310 grams with its cable. The lamp Nor 40 weighs 415 grams.", "The lamp Nor 4 weighs 415 grams."),
    ],
)
def test_another_word_in_the_same_sentence_is_found_out(source: str, lie: str) -> None:
    assert _wrong(source, lie)


@pytest.mark.parametrize(
    ("source", "lie"),
    [
        ("The green boat was sold after the white boat.", "The white boat was sold after the green boat."),
        ("The shop in Turku is full, the shop in Lahti is empty.", "The shop in Lahti is full, the shop in Turku is empty."),
        ("The shop in Turku is full, the shop in Lahti is empty.", "The shop in Turku is empty, the shop in Lahti is full."),
        ("李娜负责采购,周明负责仓库。", "周明负责采购,李娜负责仓库。"),
    ],
)
def test_words_in_exchange_are_found_out(source: str, lie: str) -> None:
    assert _wrong(source, lie)


@pytest.mark.parametrize(
    ("source", "honest"),
    [
        ("The welder has not arrived yet.", "The welder hasn't arrived."),
        ("The welder has not arrived yet.", "The welder still has not arrived."),
        ("Nobody from the mill came to the fair.", "No one from the mill came to the fair."),
        ("The board did not approve the plan for the kiln.", "The board didn't approve the kiln plan."),
        ("The mill has no parking, but the station is near.", "There is no parking at the mill, but the station is near."),
        ("验收没有通过之前不得发货。", "验收未通过之前不得发货。"),
        ("この部品は出荷されていません。", "この部品は出荷されていない。"),
        ("報告書は金曜日までに提出しなければならない。", "報告書は金曜日までに提出しなければなりません。"),
        ("Orla did not know that the ferry stops in Lund.", "The ferry stops in Lund."),
        ("El pedido no se ha enviado todavía.", "El pedido aún no se ha enviado."),
        ("Orla wanted a new kiln for the pottery; this was granted.", "Orla's wish for a new pottery kiln was granted."),
        ("All members but Vik Rowing have paid the fee.", "All members except Vik Rowing paid the fee."),
        ("The mill opens at nine and closes at six every day except Monday.", "The mill opens at 9 and closes at 6 every day but Monday."),
        (
            "Sales increased by 4 percent while the costs of the mill decreased.",
            "Sales rose by 4 percent while the costs of the mill fell.",
        ),
        (
            "The colour of the mill was finalised in spring by the painters.",
            "The color of the mill was finalized in spring by the painters.",
        ),
        ("The pump of the mill stopped twice because its filter was full.", "The mill's pump stopped twice since the filter was full."),
        (
            "The engineers tested the new valve for weeks and found no leaks.",
            "The engineers were testing the new valve for weeks, no leaks.",
        ),
        ("The shop in Turku is full, the shop in Lahti is empty.", "The shop in Lahti is empty, the shop in Turku is full."),
        ("The mill ships red, green and blue lamps to Norway.", "The mill ships blue, green and red lamps to Norway."),
        ("Mira and Jonas paint the kitchen and the hall.", "Jonas and Mira paint the hall and the kitchen."),
        ("李娜负责采购,周明负责仓库。", "周明负责仓库,李娜负责采购。"),
        ("The lamp Nor 4 weighs 310 grams. The lamp Nor 40 weighs 415 grams.", "Nor 40 weighs 415 grams, Nor 4 310 grams."),
    ],
)
def test_an_honest_rewording_stays(source: str, honest: str) -> None:
    assert not _wrong(source, honest)


def test_what_another_sentence_says_is_no_change() -> None:
    """The source has it so too, with words between."""
    source = "The young welder from Oslo has not arrived. The young welder from Riga, who is late, has arrived."
    assert not _wrong(source, "The young welder from Riga has arrived.")
