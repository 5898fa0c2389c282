"""Transcripts: results become tables, repeats merge, an earlier compression is read back."""

import json

import pytest

from pandora_dagster.compression import compress
from pandora_dagster.compression.condense.transcript import condense_transcript
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.documents.token_counter import TokenCounter


def test_what_belongs_together_stands_on_one_line(counter: TokenCounter, transcript: str) -> None:
    """A traveller with the birth date, a payment with its amount, a train with its price."""
    lines = condense_transcript(transcript, 320, counter).split("\n")
    for pair in (("Ada Berg", "1990-01-02"), ("card_5512", "82"), ("TR1", "41")):
        assert any(all(value in line for value in pair) for line in lines), pair


def test_a_compaction_of_a_compaction_merges(counter: TokenCounter, transcript: str) -> None:
    """Rows of the output are read back and share their table with rows that come later."""
    first = condense_transcript(transcript, 600, counter)
    later = (
        first
        + '\ntool search_trains: [{"train_id": "TR77", "from": "Oslo", "to": "Bergen", "departs": "23:15:00", "price": 9, "seats": 1}]'
    )
    again = condense_transcript(later + "\nuser: TR77 is cheaper.", 500, counter)
    assert sum(line.startswith("# train_id") for line in again.split("\n")) == 1
    assert {"TR1", "TR77"} <= {line.split("|")[0] for line in again.split("\n")}


def test_the_newest_version_stays_and_the_older_one_becomes_a_difference(counter: TokenCounter) -> None:
    """Of a record that changes, the change alone is kept of the older version."""
    texts = [
        f'tool get: {{"order_id": "#W1{n}", "status": "{s}", "note": "call the customer before noon"}}' for n, s in enumerate("abcdef" * 3)
    ]
    changed = 'tool get: {"order_id": "#W10", "status": "cancelled", "note": "call the customer before noon"}'
    out = condense_transcript("\n".join(("user: what about #W10?", *texts, changed)), 280, counter)
    row = next(line for line in out.split("\n") if line.startswith("#W10|"))
    assert "cancelled" in row
    assert "earlier #W10: status a" in out


def test_openai_lines_are_read_too(counter: TokenCounter) -> None:
    """JSON lines of messages condense like the transcript they are."""
    lines = [
        '{"role": "user", "content": "My id is ada_berg_71."}',
        *(f'{{"role": "assistant", "content": "Filler sentence {n}."}}' for n in range(60)),
    ]
    assert "user: My id is ada_berg_71." in condense_transcript("\n".join(lines), 60, counter)


def test_a_state_stands_with_what_it_is_the_state_of(counter: TokenCounter) -> None:
    """A record that somebody mentions is kept as a row, not as a loose state."""
    records = ", ".join(f'{{"ticket_id": "TK{n}", "status": "{"open" if n % 3 else "solved"}", "owner": "team {n}"}}' for n in range(80))
    out = condense_transcript(f"user: is TK33 done?\ntool list: [{records}]", 150, counter)
    assert any(line.startswith("TK33|") and "solved" in line for line in out.split("\n"))


def test_what_of_a_list_is_left_out_is_counted(counter: TokenCounter) -> None:
    """The head names the list and its record; rows and their count stand below, also after a second compaction."""
    orders = [{"id": f"A{n:03}", "customer": f"Name{n}", "total": 10 + n, "status": "paid"} for n in range(60)]
    text = json.dumps({"account": "C-77", "orders": orders})
    for target in (150, 100):
        text = condense_transcript(text, target, counter)
        rows = [line for line in text.split("\n") if line.startswith("A0")]
        assert "# orders of C-77: id" in text
        assert f"({60 - len(rows)} more rows left out)" in text
        assert 0 < len(rows) < 60


def test_rows_hold_the_columns_that_a_question_asks_about_by_their_names(counter: TokenCounter) -> None:
    """`cheapest` asks for a price and `nearest` for a distance, though no cell has these words; what is left out is counted."""
    records = [
        {"cabin_id": f"CAB-{200 + n}", "keeper": f"Keeper {n}", "remarks": f"remark {n} about the view and the stove",
         "opened": f"20{10 + n}-04-01", "price_per_night": 40.5 + n, "distance_km": 1.5 + n}
        for n in range(12)
    ]  # fmt: skip
    text = json.dumps({"results": records}, indent=1)
    out = condense_transcript(text, 160, counter, query="Which cabin is nearest and which one is the cheapest?")
    assert counter.count(out) <= 160
    header = next(line for line in out.split("\n") if "cabin_id|" in line)
    names = header.partition("cabin_id|")[2].split("|")
    assert set(names[:2]) == {"price_per_night", "distance_km"}
    standing = [line for line in out.split("\n") if line.startswith("CAB-")]
    assert standing
    assert all(len(line.split("|")) >= 3 for line in standing)
    assert len(standing) == 12 or f"({12 - len(standing)} more row" in out


@pytest.mark.parametrize("named", ("no", "row", "sku"))
def test_siblings_of_one_result_are_no_versions_of_each_other(counter: TokenCounter, named: str) -> None:
    """Objects that only a number names stand each in a row of their own; an object that is read twice has an earlier version."""
    parcels = [{named: n, "weight_kg": n - 9.5, "to": ("Graz", "Linz", "Wels")[n % 3]} for n in range(10, 50)]
    text = f"user: how heavy are my parcels?\ntool parcels: {json.dumps({'customer': 'CU-5', 'parcels': parcels})}"
    made = compress(CompressionRequest(text, target=160), counter)
    assert made.text and "earlier" not in made.text and "12|2.5|Graz" in made.text
    orders = [{"order": "CU-5001", "status": status, "paid": 55} for status in ("open", "sent")]
    again = "user: and now?\n" + "\n".join(f"tool order: {json.dumps(order)}" for order in orders) + "\nuser: Thank you very much. " * 9
    made = compress(CompressionRequest(again, target=40), counter)
    assert made.text and "earlier CU-5001: status open" in made.text
