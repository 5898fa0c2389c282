"""Two users on one store: whatever one of them asks, no pack, answer or search of theirs holds a word of the other's."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pandora_dagster.contracts.ids import SessionId, user_id
from pandora_dagster.phases.steps.session_facts import give_consent
from tests.phases.embedded import Embedded

KINDS = ("said", "answered", "noted", "wished", "found", "visited", "stated", "whole")
SHARED = ("desk", "oak", "lamp", "price", "seat", "flight", "garden", "speaker")
"""Words that the things of both hold: by them each is found."""


def token(user, kind):
    """A word that stands in one user's things alone."""
    return f"{user.capitalize()}{kind}zq"


def fill(world, user):
    """Turns with speakers, a live turn, a fact and a profile, memory, a note, research, a visit: each with its own token."""
    give_consent(world.app.dependencies, user_id(user))
    lines = [
        {"role": "user", "name": f"Friend{user}", "content": f"The oak desk of the speaker is {token(user, 'said')}."},
        {"role": "assistant", "content": f"The flight and the price of the desk: {token(user, 'answered')}."},
    ]
    fields = {"id": f"talk-{user}", "user_id": user, "created_at": "2026-01-04T10:00:00Z", "messages": lines}
    assert not world.app.transfer.import_conversations([json.dumps(fields).encode()], where="test").faults
    world.remember("seat", f"a seat beside the lamp, {token(user, 'wished')}", user=user)
    world.note("garden.md", f"# Garden desk\n\nThe garden lamp and the oak are {token(user, 'noted')}.", user=user)
    claim = {"claim": f"oak desk {token(user, 'found')} at a price of $99", "source": "shop.example", "confidence": 0.9}
    world.research(user=user, topic="commerce.desk", cache_key="desk_oak", summary="oak desk and lamp price", claims=[claim])
    page = {"title": f"Oak desk {token(user, 'visited')}", "price": "$99"}
    world.visit(user=user, visit_id=f"visit_{user}", url="https://shop.example/oak-desk", extracted_data=page)
    world.ask(f"My seat is the {token(user, 'stated')} beside the oak desk.", user=user, session="one")
    world.ask(f"My garden lamp is a {token(user, 'whole')}.", user=user, session="two")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A house in which Anna and Ben keep things that are alike but for one word each."""
    made = Embedded(tmp_path_factory.mktemp("two") / "store")
    for user in ("anna", "ben"):
        fill(made, user)
    yield made
    made.app.close()


def given_to(world, user, query, session):
    """Everything that a turn of `user` was sent and left, and what a search gives."""
    before = len(world.runtime.packs)
    key = world.ask(query, user=user, session=session)
    turn = world.app.turns.load(key)
    packs = [text for pack in world.runtime.packs[before:] for text in (pack.system, pack.user)]
    found = world.app.search.messages(query, user=user, budget_tokens=2_000).text
    return "\n".join((*packs, turn.context, *turn.files.values(), world.app.answer_of(key).response, found))


QUERIES = (
    "Which oak desk at which price?",
    "Where is my seat, and which lamp stands in the garden?",
    "What did the speaker say about the flight?",
    "Compare the oak desk with the garden lamp.",
)


def test_each_finds_all_of_their_own_and_nothing_of_the_other(world):
    """Over a few questions every kind of one's own things comes up, so that the other's would have come up as well."""
    for user, other in (("anna", "ben"), ("ben", "anna")):
        seen = "\n".join(given_to(world, user, query, f"s{n}") for n, query in enumerate(QUERIES))
        assert [kind for kind in KINDS if token(user, kind) not in seen] == []
        assert [kind for kind in KINDS if token(other, kind) in seen] == []
        facts = world.app.dependencies.facts
        assert token(user, "stated") in facts.session(user_id(user), SessionId("one")).model_dump_json()
        assert token(other, "stated") not in facts.profile(user_id(user)).model_dump_json()


words = st.lists(st.sampled_from([*SHARED, "Anna", "Ben", "Friendben", "Friendanna", "ben:turn_000001", "users/ben", "'; --", "🪑", "all"]))


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(["anna", "ben"]),
    words.filter(lambda w: 0 < len(w) < 9),
    st.sampled_from(["one", "two", "talk-ben", "talk-anna", "new"]),
)
def test_no_question_in_no_session_leads_to_the_other(world, user, words, session):
    """Names of the other, of their session, their turns, their folder, in any order and case."""
    other = "ben" if user == "anna" else "anna"
    seen = given_to(world, user, f"What about {' '.join(words)}?", session)
    assert [kind for kind in KINDS if token(other, kind) in seen] == []
