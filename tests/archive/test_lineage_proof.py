"""Lineage of turns that live, are archived and come back: what it says, that it is proved, and that damage is found and named."""

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from pandora_dagster.api.pages.html_pages import lineage_page
from pandora_dagster.archive.lineage_proof import LinkCheck
from pandora_dagster.archive.turn_restoration import restore
from pandora_dagster.contracts.lineage import DocumentId, LineageEdge, Relation
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.phases.flow.turn_flow import run_phase
from pandora_dagster.stores.lineage.lineage_index import DuckLineageIndex
from pandora_dagster.stores.turns.turn_folder import section_hashes
from tests.api.pages.test_html_pages import ATTACKS, Parsed
from tests.archive.archived_store import LATER, archive_context, archived, two_turns
from tests.phases.rig import gathers_all, open_rig, retrieval


@pytest.fixture
def message(rig):
    """Two turns, the second of which cites the first; its answer is long."""
    return rig, *two_turns(rig, 85)


@pytest.fixture(scope="module")
def archived_store(tmp_path_factory, recipes):
    """Two archived turns, the second of which cites the first."""
    root = tmp_path_factory.mktemp("lineage") / "store"
    rig = open_rig(root, recipes=recipes)
    first, key = two_turns(rig, 40)
    archived(rig.app, after=LATER)
    rig.app.close()
    return root, first, key


@pytest.fixture
def its_copy(archived_store, tmp_path, recipes):
    """The same, to be damaged."""
    root, first, key = archived_store
    shutil.copytree(root, tmp_path / "store")
    rig = open_rig(tmp_path / "store", recipes=recipes)
    yield rig, first, key
    rig.app.close()


def rows(rig, *keys):
    index = rig.app.lineage.index
    return [edge for key in keys for edge in index.rows_of(key.user, [str(key)])]


def faults(rig, document=None):
    found = rig.app.lineage.prove(DocumentId.parse(document) if document else None)
    return [one.fault if isinstance(one, LinkCheck) else one for one in found if not isinstance(one, LinkCheck) or one.fault]


def same_as_rebuilt(rig):
    """Whether the rows that were written one after the other are those that the manifests give."""
    index = rig.app.lineage.index
    before = [edge for user, owner in index.owners() for edge in index.rows_of(user, [owner])]
    rig.app.lineage.rebuild(report=pytest.fail)
    return before == [edge for user, owner in index.owners() for edge in index.rows_of(user, [owner])]


def test_a_turn_says_what_it_was_made_from(message):
    """Sections, the answer's whole text, the summary with its call, and what it cites with the passage; all proved."""
    rig, first, key = message
    found = rows(rig, key)
    assert {e.parent for e in found if e.relation is Relation.SECTION} == {f"{key}/context.md#{n}" for n in range(7)}
    (answer,) = [e for e in found if e.relation is Relation.COMPRESSED]
    assert (answer.parent, answer.child) == (f"{key}/response.md", f"{key}/context.md#5")
    assert answer.parent_tokens > answer.child_tokens > 0 and answer.verdicts["total"] > 0
    assert answer.recipe and answer.recipe_version and answer.prompt_hash and answer.runtime
    (summary,) = [e for e in found if e.relation is Relation.SUMMARIZED]
    assert summary.child == f"{key}/summary" and summary.recipe == "summarizer" and summary.prompt_hash and summary.model == "scripted-MIND"
    cited = [e for e in found if e.relation is Relation.CITED]
    assert {e.parent for e in cited} == {f"{first}/context.md"} and {e.child for e in cited} >= {f"{key}/context.md#2"}
    assert {e.parent_sha for e in cited} == {rig.turn(first).manifest.context_sha}
    text = rig.turn(first).context
    assert all(
        "oak desk" in text[slice(*e.span)] or "chair" in text[slice(*e.span)] or "invoice" in text[slice(*e.span)] for e in cited if e.span
    )
    assert faults(rig) == [] and rig.app.indexes.verify() == () and same_as_rebuilt(rig)


def test_archival_and_its_undoing(message):
    """An archived turn hangs on its cold object; who cites it needs nothing new; brought back, the rows are those of before."""
    rig, first, key = message
    before = rows(rig, first, key)
    archived(rig.app, after=LATER)
    found = rows(rig, first, key)
    made = {e.child: e for e in found if e.relation is Relation.COMPRESSED and "/cold/" in e.parent and "/cold/" not in e.child}
    for document in rig.app.turns.manifest(key).archive.documents:
        edge = made[f"{key}/{document.name}"]
        assert (edge.parent, edge.parent_sha, edge.child_sha) == (f"{key}/cold/{document.name}", document.sha_before, document.sha_after)
        assert (edge.recipe, edge.runtime, edge.verdicts) == (document.recipe, document.runtime, document.counts)
    assert all("/cold/" in e.child for e in found if e.relation is Relation.CITED)
    assert faults(rig) == [] and faults(rig, f"{key}/context.md") == [] and rig.app.indexes.verify() == () and same_as_rebuilt(rig)
    branches, _ = rig.app.lineage.tree(DocumentId.parse(f"{key}/context.md"))
    assert [b.document for b in branches][:2] == [f"{key}/context.md", f"{key}/cold/context.md"]
    assert f"{first}/cold/context.md#0" in {b.document for b in branches}
    restore(first, archive_context(rig.app))
    assert faults(rig) == []  # the second turn, archived still, cites the first as it was
    restore(key, archive_context(rig.app))
    assert rows(rig, first, key) == before and faults(rig) == [] and rig.app.indexes.verify() == () and same_as_rebuilt(rig)


def test_a_turn_that_runs_again_keeps_what_others_read(message):
    """A citation of an earlier revision is proved by that one; the rows are those of the newest."""
    rig, first, key = message
    rig.say(synthesizer="Another answer altogether, and a short one.")
    rig.app.run(run_phase("response", first, rig.app.dependencies))
    rig.run(first)
    assert rig.app.turns.manifest(first).revision == 1
    assert {e.child_sha for e in rows(rig, first) if e.relation is Relation.SECTION} == {rig.turn(first).manifest.context_sha}
    assert faults(rig) == [] and rig.app.indexes.verify() == () and same_as_rebuilt(rig)
    archived(rig.app, after=LATER)
    assert faults(rig) == [] and same_as_rebuilt(rig)
    assert {e.parent_sha for e in rows(rig, key) if e.relation is Relation.CITED}.isdisjoint({rig.turn(first).manifest.context_sha})


def test_narratives_and_digests_hang_on_turns_and_survive_a_rebuild(message):
    """Whatever relation a row has, the tree and the proof follow it; a reader of their texts is enough."""
    rig, first, key = message
    lineage = rig.app.lineage
    entry = {e.child: e.child_sha for e in rows(rig, first, key) if e.relation is Relation.SUMMARIZED}
    texts = {"session": "They talked about a desk.", "digest": "Desks."}
    plain = {"user_id": "anna", "at": "2026-01-04T00:00:00Z"}
    hashes = {kind: sha256(text.encode()).hexdigest() for kind, text in texts.items()}
    narrative = [
        LineageEdge(parent=p, child="anna:session/s1", relation=Relation.SUMMARIZED, parent_sha=s, child_sha=hashes["session"], **plain)
        for p, s in entry.items()
    ]
    digest = LineageEdge(
        parent="anna:session/s1",
        child="anna:digest",
        relation=Relation.DIGESTED,
        parent_sha=hashes["session"],
        child_sha=hashes["digest"],
        **plain,
    )
    lineage.index.put([*narrative, digest])
    lineage.texts().sources.update({kind: lambda user, path, text=text: (text,) for kind, text in texts.items()})
    rig.app.indexes.rebuild()
    branches, _ = lineage.tree(DocumentId.parse("anna:digest"))
    assert [b.document for b in branches][:3] == ["anna:digest", "anna:session/s1", f"{first}/summary"]
    assert f"{key}/context.md#5" in {b.document for b in branches} and any(b.is_again for b in branches)
    assert faults(rig, "anna:digest") == faults(rig) == []
    assert f"{first}/context.md" in lineage_page(lineage, DocumentId.parse("anna:digest"))
    lineage.texts().sources["session"] = lambda user, path: ("They talked about a chair.",)
    assert len(faults(rig, "anna:digest")) == 3 and "anna:session/s1: changed since it was linked" in faults(rig, "anna:digest")[0]


def _compressed_text(rig, key):
    path = Path(rig.app.turns.path(key)) / "context.md"
    path.write_text(path.read_text() + "\nand more\n")
    return "context.md", "changed since"


def _compressed_text_and_manifest(rig, key):
    """Somebody who also mends the manifest's hashes."""
    folder = Path(rig.app.turns.path(key))
    text = (folder / "context.md").read_text().replace("oak", "elm")
    (folder / "context.md").write_text(text)
    manifest = json.loads((folder / "turn.json").read_text())
    manifest |= {
        "context_sha": sha256(text.encode()).hexdigest(),
        "sections": section_hashes(ContextDocument.parse(text)),
    }
    (folder / "turn.json").write_text(json.dumps(manifest))
    return f"{key}/context.md", "changed since it was linked"


def _cold(rig, key):
    return rig.app.settings.root / rig.app.turns.manifest(key).archive.cold


def _truncated(rig, key):
    path = _cold(rig, key)
    path.write_bytes(path.read_bytes()[:-40])
    return path.name, "damaged or cut off"


def _gone(rig, key):
    _cold(rig, key).unlink()
    return _cold(rig, key).name, "missing"


def _swapped(rig, key):
    other = next(k for k in rig.app.turns.keys() if k != key)  # noqa: SIM118 - a store
    _cold(rig, key).write_bytes(_cold(rig, other).read_bytes())
    return _cold(rig, key).name, "another object's or damaged"


def _manifest_of_another(rig, key):
    """The whole record of another turn in the place of this one's."""
    other = next(k for k in rig.app.turns.keys() if k != key)  # noqa: SIM118 - a store
    path = Path(rig.app.turns.path(key)) / "turn.json"
    theirs = json.loads((Path(rig.app.turns.path(other)) / "turn.json").read_text())["archive"]
    path.write_text(json.dumps({**json.loads(path.read_text()), "archive": theirs}))
    return str(key), f"holds the originals of {other}"


def _row_gone(rig, key):
    with rig.app.lineage.index.file.writing() as db:
        db.execute("DELETE FROM lineage WHERE child = ?", [f"{key}/context.md"])
    return f"{key}/cold/context.md", "missing from the lineage, expected a row"


def _rows_gone(rig, key):
    rig.app.lineage.index.put([], owners=[str(key)])
    return str(key), "missing from the lineage"


def _row_changed(rig, key):
    with rig.app.lineage.index.file.writing() as db:
        db.execute("UPDATE lineage SET child_sha = ? WHERE child = ?", ["0" * 64, f"{key}/context.md"])
    return f"{key}/context.md", "child_sha"


def _manifest_gone(rig, key):
    (Path(rig.app.turns.path(key)) / "turn.json").unlink()
    return "turn.json", "missing"


def _linked(rig, key):
    folder = Path(rig.app.turns.path(key))
    folder.rename(outside := rig.app.settings.root.parent / "outside")
    folder.symlink_to(outside)
    assert any("a link leads to" in found_text for found_text in rig.app.indexes.verify())
    return folder.name, "a link leads to"


_DAMAGE = [
    _compressed_text,
    _compressed_text_and_manifest,
    _truncated,
    _gone,
    _swapped,
    _manifest_of_another,
    _row_gone,
    _rows_gone,
    _row_changed,
    _manifest_gone,
    _linked,
]


@pytest.mark.parametrize("damage", _DAMAGE)
def test_what_is_damaged_is_named_and_the_rest_is_proved(its_copy, damage):
    """Under the document and in the whole store; the other turn's own links stand."""
    rig, first, key = its_copy
    where, what = damage(rig, key)
    for document in (None, f"{key}/context.md"):
        found = faults(rig, document)
        assert any(where in f and what in f for f in found), found
    assert faults(rig, f"{first}/context.md") == []


def test_a_folder_that_is_gone_leaves_rows_that_are_named(its_copy):
    """Rows of a turn that is no longer there, and a citation that leads nowhere."""
    rig, first, key = its_copy
    shutil.rmtree(rig.app.turns.path(first))
    found = faults(rig)
    assert f"{first}: in the lineage, but no such turn: expected no row" in found
    assert any(f"cited: {key}/cold/context.md#2 from {first}/context.md" in f and "expected a turn that exists" in f for f in found)


def test_nobodys_id_leads_to_another_users_text(rig):
    """Two users with the same turn number: each tree, each proof and each page has one user's texts."""
    keys = {user: rig.ask(f"which chair does {user} take, {user}-secret?", user=user) for user in ("anna", "ben")}
    rig.say(retrieval=retrieval(1), context_synthesis=gathers_all)
    later = rig.ask("and which desk?", user="anna")
    page = lineage_page(rig.app.lineage, DocumentId.parse(f"{later}/context.md"))
    assert "anna-secret" in page and "ben-secret" not in page and "ben:" not in page
    with pytest.raises(ValueError, match="expected one of anna"):
        LineageEdge.model_validate({**rows(rig, keys["anna"])[0].model_dump(), "parent": f"{keys['ben']}/context.md"})
    assert {e.user_id for e in rows(rig, later)} == {"anna"} and not rig.app.lineage.index.rows_of("ben", [str(later)])
    assert faults(rig) == []


def test_a_page_shows_what_users_wrote_as_text(rig):
    """In a question, in an answer, in its compression: no element comes of it, and the words stand there."""
    attacks = " and ".join(ATTACKS).replace("\x00", "")
    rig.say(synthesizer=lambda pack: f"Said: {attacks} and so on.", compressor="none of it")
    key = rig.ask(f"what is {attacks} {'and the oak desk for $420 ' * 30}?")
    archived(rig.app, after=LATER)
    text = lineage_page(rig.app.lineage, DocumentId.parse(f"{key}/context.md"))
    found = Parsed(text)
    assert not {"img", "svg", "iframe", "object"} & {tag for tag, _ in found.tags}
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on") or name in ("style", "src", "action")]
    assert [tag for tag, _ in found.tags].count("style") == [tag for tag, _ in found.tags].count("script") == 1
    assert all((a["href"] or "").startswith("#") for tag, a in found.tags if tag == "a" and "href" in a)
    ids = [a["id"] for _, a in found.tags if "id" in a]
    assert len(ids) == len(set(ids)) and {a["href"][1:] for _, a in found.tags if "href" in a} <= set(ids)
    assert all(found.text.count(attack) >= 2 for attack in ATTACKS if attack.isprintable())


def test_a_page_colours_facts_and_links_citations(its_copy):
    """Original and compressed beside each other, a verdict for each fact, each citation a link to its place."""
    rig, _, key = its_copy
    text = lineage_page(rig.app.lineage, DocumentId.parse(f"{key}/context.md"))
    found = Parsed(text)
    classes = {a.get("class") or "" for tag, a in found.tags if tag == "mark"}
    assert "kept" in classes and {"missing", "kept critical"} & classes and "span" in classes
    assert any("money" in (a.get("title") or "") for tag, a in found.tags if tag == "mark")
    anchors = {a["id"] for _, a in found.tags if "id" in a}
    cites = text.count('">[1]</a>') + text.count("[1]</mark></a>")
    assert cites >= 1 and {a["href"][1:] for tag, a in found.tags if tag == "a" and "href" in a} <= anchors
    assert lineage_page(rig.app.lineage, DocumentId.parse(f"{key}/context.md")) == text


def test_an_index_that_cannot_be_written_undoes_no_turn(rig, capsys):
    """It is reported, once; the turn is saved; asked for, the lineage is made again and the damaged file kept."""
    index = rig.app.lineage.index
    index.file.path.parent.mkdir(parents=True, exist_ok=True)
    index.file.path.write_bytes(b"no index" * 500)
    rig.say(compressor="none of it")
    keys = [rig.ask("which chair?") for _ in range(2)]
    assert {rig.turn(key).manifest.state for key in keys} == {"saved"}
    assert archived(rig.app, after=LATER)[0].counts == {"archived": 2}
    assert capsys.readouterr().err.count("their lineage is not: run `pandora index rebuild`") == 1
    found_text = []
    assert (
        rig.app.lineage.ensure_index(report=found_text.append)
        and "damaged or not an index" in found_text[0]
        and ".damaged-1" in found_text[1]
    )
    assert faults(rig) == [] and not rig.app.lineage.ensure_index(report=pytest.fail)
    index.file.path.unlink()
    assert rig.app.lineage.ensure_index(report=found_text.append) and rig.app.indexes.verify() == ()
    assert isinstance(index, DuckLineageIndex)
