"""Recorded answers: by their query, else by `*`; a damaged file is named."""

import json
from pathlib import Path

import pytest

from pandora_dagster.errors import ConfigurationError
from pandora_dagster.tools.search.recorded import open_recorded


def test_a_query_has_its_answer_on_the_first_page(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_text(json.dumps({"Arc 60": [{"url": "http://a.test/"}], "*": []}))
    provider = open_recorded(path)
    assert [hit.url for hit in provider.search("arc 60", page=1, language="").hits] == ["http://a.test/"]
    assert provider.search("arc 60", page=2, language="").hits == () == provider.search("other", page=1, language="").hits


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', "{"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "answers.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"answers\.json"):
        open_recorded(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.json"):
        open_recorded(tmp_path / "none.json")
