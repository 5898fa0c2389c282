"""A store of two users whose ids are alike, with something of both in every place that a store has."""

import json
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from pandora_dagster.app import open_app
from pandora_dagster.app.adapters.erasure_adapters import open_erasure
from pandora_dagster.archive.turn_restoration import pin, restore
from pandora_dagster.contracts.batches import Batch, BatchQuery, RejectedLine, query_file_digest
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.defs.instance import TURNS, add_turn_partitions, open_instance
from pandora_dagster.defs.run_records import open_run_eraser
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.records.batch_files import BatchFiles
from tests.archive.archived_store import archive_context, archived
from tests.phases.vocabulary import vocabulary

BEN, RUBEN = UserId("ben"), UserId("ruben")
HIS = ("Zephyrine Quillfeather", "INV-90817-QX", "$48,213.77", "zephyrine@quillfeather.example", "Müllerstraße Nordhalde")
"""What only Ben said."""
BOTH = ("Halvorsen Furniture", "order SHD-55120")


def conversation(user, number, names):
    texts = [f"{names[n % len(names)]} asked about the oak desk of Halvorsen Furniture, order SHD-55120, item {n}." for n in range(12)]
    messages = []
    for turn in range(4):
        messages.append({"role": "user", "content": f"What about {names[turn % len(names)]}, in round {turn}?"})
        messages.append({"role": "assistant", "content": "\n\n".join(texts)})
    return json.dumps({"id": f"{user}-{number}", "user_id": user, "created_at": "2026-01-04T10:00:00Z", "messages": messages}).encode()


def opened(root):
    return open_app(load_settings({"PANDORA_ROOT": str(root)}), counter=vocabulary())


def furnished(root: Path):
    """The store; returned closed."""
    app = opened(root)
    theirs = ("Ottoline Brackenbury", "INV-11223-RB", "$7,004.19", "ottoline@brackenbury.example", "Südermarkt Oldenfeld")
    lines = [conversation(BEN, n, HIS) for n in range(2)] + [conversation(RUBEN, n, theirs) for n in range(2)]
    app.transfer.import_conversations(lines, where="made")
    ben = list(app.turns.keys(BEN))
    pin(ben[0], archive_context(app))
    archived(app)
    restore(ben[1], archive_context(app))
    for user, texts in ((BEN, HIS), (RUBEN, theirs)):
        app.start(f"Is {texts[0]} in?", user=user, session="live")
        app.vault.keep(user, "pack", f"a prompt about {texts[1]}")
        app.interventions.open(InterventionType.CORRUPT_DOCUMENT, f"{texts[0]} halted", user_id=user, turn_id="turn_000008")
    app.interventions.open(InterventionType.CONFIG_ERROR, f"ruben:turn_000001 beside ben:turn_000002: {HIS[0]}", user_id=RUBEN)
    recorded(root, app)
    (root / "serving").mkdir()
    (root / "serving" / "mind.log").write_text(f"POST ok\nprompt {HIS[1]}\nprompt {theirs[1]}\n")
    (root / "indexes" / "turn_index.duckdb.damaged-1").write_bytes(b"left over " + HIS[0].encode())
    app.close()
    dagster(root)


def recorded(root, app):
    """A batch of both, its file done, and a file that waits."""
    asked = [(BEN, f"where is {HIS[0]}?"), (RUBEN, "where is the desk?")]
    data = "".join(json.dumps({"query": q, "user": u}) + "\n" for u, q in asked).encode() + b'{"query": "no end", "user": "ben"'
    queries = tuple(BatchQuery(line=n, query=q, turn=str(TurnKey(u, 900 + n)), session="s") for n, (u, q) in enumerate(asked, 1))
    rejected = (RejectedLine(line=3, reason="column 30", text='{"query": "' + HIS[0] + '", "user": "ben"}'),)
    BatchFiles(root).begin(Batch(digest=query_file_digest(data), file="q.jsonl", day="2026-01-05", queries=queries, rejected=rejected))
    done = root / "inbox" / "done" / "2026-01-05"
    done.mkdir(parents=True)
    (done / "q.jsonl").write_bytes(data.rpartition(b"\n")[0] + b"\n")
    (done / "q.rejected.jsonl").write_text(json.dumps(rejected[0].model_dump()) + "\n")
    (root / "inbox" / "next.jsonl").write_bytes(data.rpartition(b"\n")[0] + b"\n")


@dg.asset(partitions_def=TURNS)
def answer(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    his = context.partition_key.startswith("ben:")
    texts = HIS[0] if his else "Ottoline Brackenbury"
    context.log.info(f"it says {texts}")
    return dg.MaterializeResult(metadata={"said": texts, "folder": f"/store/users/{context.partition_key.partition(':')[0]}/turns"})


@dg.asset
def archival_run() -> dg.MaterializeResult:
    rows = [{"turn": f"{u}:turn_{n:06d}", "cold": f"cold/{u}/2026/01/ab.tar.zst"} for u in ("ben", "ruben") for n in (1, 2)]
    return dg.MaterializeResult(metadata={"rows": dg.MetadataValue.table([dg.TableRecord(row) for row in rows]), "of": HIS[0]})


def dagster(root):
    with open_instance(load_settings({"PANDORA_ROOT": str(root)})) as instance:
        keys = [TurnKey(user, number) for user in (RUBEN, BEN) for number in (1, 2)]
        add_turn_partitions(instance, keys)
        for key in keys:
            dg.materialize([answer], instance=instance, partition_key=str(key), tags={"pandora/user": key.user})
        dg.materialize([archival_run], instance=instance)
        instance.report_runless_asset_event(dg.AssetMaterialization("answer", partition="ben:turn_000002", metadata={"said": HIS[1]}))


def erasure(root, **how):
    settings = load_settings({"PANDORA_ROOT": str(root)})
    return open_erasure(settings, open_run_eraser(settings), **how)


def of_others(root, user=BEN):
    """Every document and original that is not the user's."""
    files = (p for part in ("users", "cold") for p in (root / part).rglob("*") if p.is_file())
    return {p.relative_to(root): p.read_bytes() for p in files if p.relative_to(root).parts[1] != user}


def now():
    return datetime.now(UTC)
