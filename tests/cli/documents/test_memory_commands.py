"""`pandora memory consent|erase|facts`, on a store of their own."""

import json
import os

import pytest
from typer.testing import CliRunner

from pandora_dagster.cli.program import command_line


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """`pandora --root ROOT memory ARGUMENTS` inside this process."""
    for name in os.environ:
        if name.startswith("PANDORA_"):
            monkeypatch.delenv(name)
    root = tmp_path / "store"
    (root / "users").mkdir(parents=True)
    return lambda *arguments: CliRunner().invoke(command_line, ["--root", str(root), "memory", *arguments], prog_name="pandora")


def test_consent_is_off_until_it_is_given(invoke, tmp_path):
    """Looking writes nothing; on, show and off tell how it stands."""
    assert "off: no profile is stored" in invoke("consent", "--user", "anna").stdout and not list((tmp_path / "store/users").iterdir())
    assert "anna: on since" in invoke("consent", "on", "--user", "anna").stdout
    shown = json.loads(invoke("consent", "show", "--user", "anna", "--json").stdout)
    assert shown["consent"] is True and shown["facts"] == 0 and shown["since"]
    assert json.loads(invoke("consent", "show", "--user", "ben", "--json").stdout)["consent"] is False
    assert "off" in invoke("consent", "off", "--user", "anna").stdout and not (tmp_path / "store/users/anna/profile.json").exists()


def test_erasing_says_what_went(invoke):
    """Also where there is nothing."""
    assert invoke("erase", "--user", "anna").stdout == "anna: 0 facts of the profile erased\n"
    printed_text = json.loads(invoke("erase", "--user", "anna", "--sessions", "--json").stdout)
    assert printed_text == {"user_id": "anna", "profile_facts": 0, "session_facts": 0}
    assert json.loads(invoke("facts", "--user", "anna", "--session", "s1", "--json").stdout) == []


def test_an_unknown_wish_is_named(invoke):
    """Exit code 2, with what is expected."""
    result = invoke("consent", "maybe")
    assert result.exit_code == 2 and "expected on, off or show" in result.output


def test_a_user_that_is_no_name_reaches_no_path(invoke, tmp_path):
    """An id that could leave the store is refused."""
    assert invoke("consent", "on", "--user", "../up").exit_code != 0 and not list(tmp_path.rglob("profile.json"))


def test_the_profile_and_what_is_kept_under_keys_are_distinguished(invoke):
    """Consent speaks of the profile alone: what was set under a key is listed beside it, and goes by `forget` alone."""
    invoke("set", "budget", "$900", "--user", "anna")
    off = invoke("consent", "off", "--user", "anna")
    assert "no profile" in off.stdout and "pandora memory forget" in off.stderr
    shown = invoke("list", "--user", "anna")
    assert "$900" in shown.stdout and "profile of anna: off" in shown.stderr
    invoke("consent", "on", "--user", "anna")
    assert "0 more facts: pandora memory facts" in invoke("list", "--user", "anna").stderr
    assert "nothing was stated since" in invoke("facts", "--user", "anna").stderr
    assert "pandora memory list" in invoke("erase", "--user", "anna").stderr
    assert "$900" in invoke("list", "--user", "anna").stdout


def test_a_key_that_holds_both_kinds_says_what_is_forgotten(invoke):
    """Two values of one kind follow each other; of two kinds both go, and both are named."""
    for value, kind in (("$500", "preference"), ("$900", "preference"), ("12 months", "fact")):
        invoke("set", "budget", value, "--kind", kind, "--user", "anna")
    found = json.loads(invoke("list", "--user", "anna", "--json").stdout)
    assert [(e["kind"], e["value"], [o["value"] for o in e["earlier"]]) for e in found] == [
        ("preference", "$900", ["$500"]),
        ("fact", "12 months", []),
    ]
    assert invoke("forget", "budget", "--user", "anna").stdout == "preference and fact budget deleted for anna\n"
    assert json.loads(invoke("list", "--user", "anna", "--json").stdout) == []
