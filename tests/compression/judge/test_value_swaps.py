"""Values and names in exchange are found out; what is honestly reworded is left alone."""

import pytest

from pandora_dagster.compression import Outcome, build_ledger, verify

_WRONG = (Outcome.MUTATED, Outcome.INVENTED)

PAID = "Anna paid $30 and Bert $45."
LEASE = "The kitchen lease costs 900 EUR a month, the cellar lease 400 EUR a month, and the deposit is 1,800 EUR."
TRIAL = "Group A lost 4.2 kg in 12 weeks, while group B lost 1.1 kg in 16 weeks."
SALES = "Revenue rose from $5 million in 2023 to $6 million in 2024."
CLUSTER = "The primary node uses 64 GB and 16 cores; the replica uses 32 GB and 8 cores."
DEBT = "Last week Anna lent Bert $30. Since then Bert owes Anna $30."
TEAM = "On Monday Mira Holt reviewed the work of Jon Sand, and later Jon Sand thanked Lena Vik."
TRAINS = "The train from Oslo leaves at 08:15 and the bus from Bergen leaves at 09:40."
CHAT = "Ada: I pay $12 for the tea.\nIvo: And I pay $19 for the cake.\nAda: Ivo called Lena on 3 May and Mia on 9 May."
TAKEOVER = "In spring Norda bought Velta for $3 billion, and Velta sold Kinto for $1 billion."
LAW = (
    "In this case Holm sued Brandt before the court in Turku, and the court ordered Brandt to repay 8,000 EUR and Holm to repay 2,500 EUR."
)
POLL = "In the poll 61 % of the teachers and 34 % of the parents want the new hours."


@pytest.mark.parametrize(
    ("source", "honest"),
    [
        (PAID, "Bert paid $45 and Anna $30."),
        (PAID, "Anna: $30, Bert: $45."),
        (PAID, "$45 was paid by Bert and $30 by Anna."),
        (PAID, "Bert and Anna paid $45 and $30."),
        (LEASE, "The deposit is 1,800 EUR; the cellar costs 400 EUR a month, the kitchen 900 EUR a month."),
        (LEASE, "Leases: kitchen 900 EUR a month, cellar 400 EUR a month. Deposit: 1,800 EUR."),
        (TRIAL, "Group B lost 1.1 kg in 16 weeks and group A 4.2 kg in 12 weeks."),
        (TRIAL, "In 12 weeks group A lost 4.2 kg; in 16 weeks group B lost 1.1 kg."),
        (SALES, "In 2024 revenue was $6 million, after $5 million in 2023."),
        (SALES, "Revenue rose to $6 million from $5 million."),
        (CLUSTER, "The replica has 8 cores and 32 GB, the primary node 16 cores and 64 GB."),
        (CLUSTER, "Primary: 64 GB, 16 cores. Replica: 32 GB, 8 cores."),
        (DEBT, "Bert owes Anna $30, which Anna lent Bert last week."),
        (DEBT, "Anna is owed $30 by Bert."),
        (TEAM, "Mira Holt reviewed Jon Sand's work; Jon thanked Lena Vik."),
        (TEAM, "Lena Vik was thanked by Jon Sand, whose work Mira Holt reviewed."),
        (TRAINS, "The bus from Bergen leaves at 09:40, the train from Oslo at 08:15."),
        (TRAINS, "Departures: Oslo 08:15 (train), Bergen 09:40 (bus)."),
        (CHAT, "Ada pays $12 for the tea and Ivo $19 for the cake."),
        (CHAT, "Ivo called Mia on 9 May and Lena on 3 May."),
        (TAKEOVER, "Velta was bought by Norda for $3 billion; Velta sold Kinto for $1 billion."),
        (TAKEOVER, "Norda bought Velta ($3 billion). Kinto was sold by Velta ($1 billion)."),
        (LAW, "Holm sued Brandt. Brandt must repay 8,000 EUR, Holm 2,500 EUR."),
        (LAW, "Brandt was sued by Holm in Turku."),
        (POLL, "The new hours are wanted by 34 % of the parents and 61 % of the teachers."),
        (POLL, "Poll on the new hours: teachers 61 %, parents 34 %."),
    ],
)
def test_an_honest_rewording_stays(source: str, honest: str) -> None:
    """Another order, another voice, a list: nothing is changed or invented."""
    assert not [(v.text, v.reason) for v in verify(build_ledger(source), source, honest).of(*_WRONG)]


@pytest.mark.parametrize(
    ("source", "lie"),
    [
        (PAID, "Anna paid $45 and Bert $30."),
        (PAID, "Bert paid $30 and Anna $45."),
        (PAID, "Anna: $45, Bert: $30."),
        (PAID, "$45 was paid by Anna and $30 by Bert."),
        (LEASE, "The kitchen lease costs 400 EUR a month and the cellar lease 900 EUR a month."),
        (LEASE, "The cellar costs 900 EUR a month, the deposit is 1,800 EUR, the kitchen 400 EUR a month."),
        (TRIAL, "Group A lost 1.1 kg, while group B lost 4.2 kg."),
        (TRIAL, "Group A lost weight in 16 weeks, while group B lost weight in 12 weeks."),
        (SALES, "Revenue rose from $6 million to $5 million."),
        (SALES, "Revenue was $6 million in 2023 and $5 million in 2024."),
        (CLUSTER, "The primary node uses 32 GB; the replica uses 64 GB."),
        (CLUSTER, "The primary node has 8 cores, the replica 16 cores."),
        (DEBT, "Anna owes Bert $30."),
        (DEBT, "Last week Bert lent Anna $30."),
        (TEAM, "Later Lena Vik thanked Jon Sand."),
        (TEAM, "Jon Sand reviewed the work of Mira Holt."),
        (TRAINS, "The train from Oslo leaves at 09:40 and the bus from Bergen at 08:15."),
        (CHAT, "Ada pays $19 for the tea and Ivo $12 for the cake."),
        (CHAT, "Ivo called Lena on 9 May and Mia on 3 May."),
        (TAKEOVER, "Velta bought Norda for $3 billion."),
        (TAKEOVER, "Norda bought Velta for $1 billion, and Velta sold Kinto for $3 billion."),
        (LAW, "Brandt sued Holm before the court in Turku."),
        (LAW, "Brandt must repay 2,500 EUR and Holm 8,000 EUR."),
        (POLL, "61 % of the parents and 34 % of the teachers want the new hours."),
    ],
)
def test_an_exchange_is_found_out(source: str, lie: str) -> None:
    """Each value and each name stands in the source, but not with this one."""
    assert verify(build_ledger(source), source, lie).of(*_WRONG)
