"""What tells of a person: found in every form it is written in, and nobody else's words are."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.documents.redaction.user_traces import UserTraces, encoded_forms, occurring_facts


@pytest.mark.parametrize(
    "text",
    [
        "ben:turn_000004",
        "x ben:turn_000004/cold/context.md#5",
        "ben:digest",
        "ben:session/conv-1",
        "/store/users/ben/turns",
        "cold/ben/2026/01/ab.tar.zst",
        '{"user_id": "ben"}',
        '{"user":"ben"}',
        json.dumps(json.dumps({"pandora/user": "ben"})),
        json.dumps(json.dumps({"of": "ben", "outcome": "made"})),
        json.dumps({"of": "ben, session wall"}),
        "- [ben](http://127.0.0.1:8401/lineage/erased)",
        "- [ben, session wall](http://127.0.0.1:8401/lineage/erased)",
    ],
)
def test_an_id_is_found_where_it_stands_for_the_person(text):
    traces = UserTraces("ben")
    assert traces.found_in(text.encode()) and traces.names_user(text)
    assert not traces.found_in(traces.scrub(text).encode()) and "erased" in traces.scrub(text)


@pytest.mark.parametrize(
    "text",
    [
        "ruben:turn_000004",
        "ben.b:turn_000001",
        "users/benny/turns",
        "users/ruben",
        '{"user_id": "ben2"}',
        "a word like ben, or Ben's",
        '{"of": "ben was here"}',
        "[ben] (http",
        "[ben, or not](http",
    ],
)
def test_no_other_id_and_no_word_is_a_trace_of_a_short_one(text):
    traces = UserTraces("ben")
    assert not traces.found_in(text.encode()) and traces.scrub(text) == text


def test_an_id_that_nobody_else_has_is_found_as_any_word():
    traces = UserTraces("tamsin.o", is_id_distinctive=True)
    assert traces.found_in(b"asked by Tamsin.O today") and not traces.found_in(b"tamsin.other, xtamsin.o")
    assert traces.scrub("for Tamsin.o, and tamsin.other") == "for erased, and tamsin.other"


FACT = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=5, max_size=30).filter(lambda t: len(t.strip()) >= 5)


@given(st.lists(FACT, min_size=1, max_size=30, unique=True), st.data())
def test_every_fact_is_found_in_every_form(facts, data):
    """As text, as JSON, as JSON within JSON, escaped or not."""
    fact = data.draw(st.sampled_from(facts))
    traces = UserTraces("u-0000", tuple(facts))
    once = json.dumps(fact, ensure_ascii=data.draw(st.booleans()))
    for form in (fact, once, json.dumps({"said": once}, ensure_ascii=data.draw(st.booleans()))):
        assert traces.found_in(f" {form} ".encode())
    assert fact in occurring_facts(facts, [f" {fact} ".encode()])


@given(st.lists(FACT, min_size=1, max_size=20, unique=True), FACT)
def test_a_text_without_any_of_the_facts_has_no_trace(facts, text):
    """By a plain search for each form."""
    there = any(form in text.encode().lower() for fact in facts for form in encoded_forms(fact))
    if not there:
        assert not UserTraces("u-0000", tuple(facts)).found_in(text.encode())
        assert not occurring_facts(facts, [text.encode()])


PLAIN = FACT.map(lambda text: text.replace('"', "'").replace("\\", "/"))


@given(st.lists(PLAIN, min_size=1, max_size=8, unique=True), st.dictionaries(st.sampled_from("abc"), FACT))
def test_scrubbed_json_stays_json(facts, told):
    clean = UserTraces("u-0000", tuple(facts)).scrub(json.dumps(told))
    assert isinstance(json.loads(clean), dict)


def test_facts_that_overlap_are_all_seen():
    facts = ["Lofta 140", "Lofta", "140 desk in oak", "order ORD-77120"]
    assert occurring_facts(facts, [b"the Lofta 140 desk in oak"]) == {"Lofta 140", "Lofta", "140 desk in oak"}
