"""Research and visits: strict to read, one file a record, found again by their logical ids, rebuilt from the files."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.ports.user_storage import SourceStore
from pandora_dagster.contracts.user.sources import Provenance, Research, ResearchRow, Visit
from pandora_dagster.errors import BadIdError, DocumentError, StoreError
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.user.source_files import (
    RESEARCH_SCHEMA,
    DuckResearchIndex,
    SourceFiles,
    read_record,
    rebuild_sources,
    render_record,
    verify_sources,
)

ANNA, BEN = user_id("anna"), user_id("ben")
RESEARCH = {
    "topic": "commerce.laptop",
    "cache_key": "nvidia_gpu_laptop_budget",
    "created_at": "2026-01-04T13:15:00Z",
    "expires_at": "2026-01-04T19:15:00Z",
    "quality_score": 0.88,
    "summary": "Found 12 laptops with NVIDIA GPUs from 5 vendors",
    "claims": [
        {"claim": "Lenovo LOQ 15 @ $697", "source": "bestbuy.com", "confidence": 0.92},
        {"claim": "ASUS TUF @ $749", "source": "amazon.com", "confidence": 0.88},
    ],
    "webpage_cache": ["visit_abc123", "visit_def456"],
}
VISIT = {
    "visit_id": "visit_abc123",
    "url": "https://www.bestbuy.com/site/lenovo-loq-15",
    "visited_at": "2026-01-04T13:20:00Z",
    "page_type": "product",
    "extracted_data": {"title": "Lenovo LOQ 15", "price": "$697.00", "specs": {"gpu": "NVIDIA RTX 4050"}, "availability": "In Stock"},
    "extraction_quality": 0.95,
}


def research(**changed):
    return read_record(json.dumps({**RESEARCH, **changed}), Research, where="r.json")


def visit(**changed):
    return read_record(json.dumps({**VISIT, **changed}), Visit, where="v.json")


@pytest.fixture
def index(tmp_path):
    return DuckResearchIndex(DuckDBFile(tmp_path / "indexes" / "research_index.duckdb", RESEARCH_SCHEMA))


@pytest.fixture
def store(tmp_path, index) -> SourceStore:
    return SourceFiles(tmp_path, index)


def test_the_specification_s_own_records_come_back(store):
    """004 sections 3.5 and 3.6, with who stored them."""
    kept = research().model_copy(update={"provenance": Provenance(added_at="2026-01-04T14:00:00Z", by="internet.research", source_turn=7)})
    store.put(ANNA, kept)
    store.put(ANNA, visit())
    assert store.research(ANNA, "commerce.laptop") == kept and store.visit(ANNA, "visit_abc123") == visit()
    (row,) = store.research_rows(ANNA)
    assert (row.webpage_cache, row.source_turn, row.quality_score) == (("visit_abc123", "visit_def456"), 7, 0.88)
    assert store.visit_rows(ANNA)[0].fields == ("title", "price", "specs", "availability")


def test_a_topic_leads_to_its_newest_record(store):
    """Each cache key has its own record; the same one again takes its place."""
    older, newer = research(), research(cache_key="other", created_at="2026-01-04T15:00:00Z")
    for one in (newer, older, research(summary="again")):
        store.put(ANNA, one)
    assert store.research(ANNA, "commerce.laptop") == newer and [r.summary for r in store.research_rows(ANNA)][1:] == ["again"]


def test_logical_ids_lead_to_files_that_bear_no_word_of_the_record(store, tmp_path):
    """The index alone resolves them (DECISIONS 20)."""
    store.put(ANNA, research())
    store.put(ANNA, visit())
    for logical in ("research_cache/commerce.laptop.json", "webpage_cache/visit_abc123.json"):
        path = store.path(ANNA, logical)
        assert path and path.startswith(str(tmp_path / "users/anna/")) and "laptop" not in path.rpartition("/")[2]
        assert store.path(BEN, logical) is None
    assert store.path(ANNA, "research_cache/../../etc/passwd") is None


BROKEN = {
    "not JSON": ("{", r"r\.json:1: not JSON: .*expected one object with topic, cache_key, .*summary"),
    "a list": ("[]", r"r\.json: .*expected one object with topic, cache_key"),
    "a key twice": ('{"topic": "a.b", "topic": "c.d"}', r"r\.json: duplicate key 'topic'"),
    "not a number": ('{"quality_score": NaN}', r"r\.json: NaN is not a JSON number"),
    "nested": ("[" * 100_000, r"r\.json: nested deeper than 64 levels"),
    "a topic that is a path": (json.dumps({**RESEARCH, "topic": "../../etc"}), r"r\.json: topic: expected category\.subcategory"),
    "a word as a number": (json.dumps({**RESEARCH, "quality_score": True}), r"r\.json: quality_score: .*: expected a number from 0 to 1"),
    "quality": (json.dumps({**RESEARCH, "quality_score": 7}), r"r\.json: quality_score: .*: expected a number from 0 to 1"),
    "unknown field": (
        json.dumps({**RESEARCH, "colour": "red"}),
        r"r\.json: colour: no field of a record: expected topic, .*webpage_cache, contradicted$",
    ),
    "no source": (
        json.dumps({**RESEARCH, "claims": [{"claim": "x", "confidence": 1}]}),
        r"r\.json: claims\.0\.source: missing: expected the site it comes from",
    ),
    "two faults": (json.dumps({**RESEARCH, "topic": 1, "summary": None}), r"(?s)topic: .*summary: "),
    "time": (json.dumps({**RESEARCH, "created_at": "yesterday"}), r"created_at: expected a time such as"),
    "dead at birth": (json.dumps({**RESEARCH, "expires_at": RESEARCH["created_at"]}), r"expires_at .*: expected a time after created_at"),
    "visit id": (json.dumps({**RESEARCH, "webpage_cache": ["../x"]}), r"webpage_cache\.0: expected visit_"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_record_is_named_with_its_place(case):
    """Where, what, what was expected; nothing is guessed."""
    text, says = BROKEN[case]
    with pytest.raises(DocumentError, match=says):
        read_record(text, Research, where="r.json")


@pytest.mark.parametrize("url", ["ftp://a.b", "javascript:alert(1)", "https://a b", "https://a`b", "x"])
def test_a_visit_has_an_address_of_the_web(url):
    """Other schemes, blanks and backticks are refused."""
    with pytest.raises(DocumentError, match=r"v\.json: url: expected an http"):
        visit(url=url)


def test_a_damaged_or_missing_file_is_reported_when_it_is_named(store):
    """The rows stay; the record that is asked for raises with its file."""
    store.put(ANNA, research())
    store.put(ANNA, visit())
    path = store.path(ANNA, "research_cache/commerce.laptop.json")
    Path(path).write_text('{"topic": ')
    with pytest.raises(DocumentError, match="not JSON") as corrupt:
        store.research(ANNA, "commerce.laptop")
    Path(store.path(ANNA, "webpage_cache/visit_abc123.json")).unlink()
    with pytest.raises(DocumentError, match="missing") as gone:
        store.visit(ANNA, "visit_abc123")
    assert (corrupt.value.missing, gone.value.missing) == (False, True)
    assert "missing: expected the record that the index names" in str(gone.value) and "pandora visit add" in gone.value.hint
    with pytest.raises(DocumentError, match="not among the cached research of anna") as never:
        store.research(ANNA, "travel.rome")
    assert never.value.missing


def test_a_file_that_is_another_record_is_refused(store):
    """A record copied over another's file is not taken for it."""
    store.put(ANNA, visit())
    Path(store.path(ANNA, "webpage_cache/visit_abc123.json")).write_text(json.dumps({**VISIT, "visit_id": "visit_other"}))
    with pytest.raises(DocumentError, match="visit_id visit_other: expected visit_abc123"):
        store.visit(ANNA, "visit_abc123")


def test_the_index_is_made_again_from_the_files(store, index, tmp_path):
    """Verify finds what was lost, changed or added behind its back; rebuild mends it and names what cannot be read."""
    store.put(ANNA, research())
    store.put(ANNA, visit())
    store.put(BEN, visit(visit_id="visit_ben"))
    assert verify_sources(store, index) == ()
    before = (store.research_rows(ANNA), store.visit_rows(BEN))
    index.file.path.unlink()
    assert len(verify_sources(store, index)) == 3 and store.research_rows(ANNA) == ()
    faults = []
    assert rebuild_sources(store, index, report=faults.append) == (3, None)
    assert (store.research_rows(ANNA), store.visit_rows(BEN)) == before and not faults
    (tmp_path / "users/ben/webpage_cache/broken.json").write_text("{")
    assert any("broken.json" in fault for fault in verify_sources(store, index))
    assert rebuild_sources(store, index, report=faults.append)[0] == 3 and "broken.json" in faults[0]


def test_a_damaged_index_is_kept(store, index):
    """As the index of turns is."""
    store.put(ANNA, research())
    index.file.path.write_bytes(b"no database")
    _, damaged_file = rebuild_sources(store, index, report=print)
    assert damaged_file and damaged_file.read_bytes() == b"no database" and len(index.rows(ResearchRow, "anna")) == 1


def test_nothing_is_written_by_reading(store, tmp_path):
    """An empty store stays empty."""
    assert store.research_rows(ANNA) == () and store.path(ANNA, "research_cache/a.json") is None and list(tmp_path.iterdir()) == []


def test_a_link_out_of_the_store_is_refused(store, tmp_path):
    """The folder of a user's records must lie in the store."""
    (tmp_path / "users/anna").mkdir(parents=True)
    outside = tmp_path.parent / f"{tmp_path.name}_outside"
    outside.mkdir()
    (tmp_path / "users/anna/research_cache").symlink_to(outside)
    with pytest.raises(StoreError, match="a link leads to"):
        store.put(ANNA, research())
    assert list(outside.iterdir()) == []


def test_a_user_that_is_no_user_is_refused(store):
    """An id that could leave its folder never becomes a path."""
    with pytest.raises(BadIdError):
        store.put("../ben", visit())


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20).filter(str.isprintable),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8).filter(str.isprintable), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(min_size=1, max_size=8).filter(str.isprintable), JSON_VALUES, max_size=4))
def test_whatever_was_extracted_reads_back(extracted):
    """Split and join is identity: what is written is what was given."""
    record = visit().model_copy(update={"extracted_data": extracted})
    assert read_record(render_record(record), Visit, where="v.json") == record
