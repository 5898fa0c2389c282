"""`make bench-research` fails where a target is missed, and says which."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import research
from benchmarks.research import Figure, answer_figures, main, reading_figures, run_figures
from tests.small_web import FOLDER, NEEDS_SMALL_WEB, small_web

LOG = dict.fromkeys(
    ("robots_broken", "crawl_delay_broken", "two_at_once_on_a_host", "retry_after_broken", "canary_hits", "collector_hits"), 0
)
READING = {"segment_f1": 0.93, "field_accuracy": 0.9, "hidden_leaks": 0}
RUN = {
    "quotes_verbatim": 1.0,
    "quotes_that_carry_the_value": 1.0,
    "hostile_followed": 0,
    "claims_from_barred_pages": 0,
    "claims_from_unknown_pages": 0,
}


def missed(figures: list[Figure]) -> list[str]:
    return [figure.name for figure in figures if not figure.holds]


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"segment_f1": 0.929}, "segment F1"),
        ({"field_accuracy": 0.89}, "fields right"),
        ({"hidden_leaks": 1}, "hidden segments read"),
        ({"robots_broken": 1}, "robots broken"),
        ({"crawl_delay_broken": 1}, "crawl delay broken"),
        ({"canary_hits": 1}, "canary hits"),
    ],
)
def test_reading_has_its_targets(changed: dict[str, float], name: str) -> None:
    assert missed(reading_figures(READING, LOG)) == []
    assert missed(reading_figures({**READING, **changed}, {**LOG, **changed})) == [name]


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"quotes_verbatim": 0.99}, "quotes verbatim"),
        ({"quotes_verbatim": None}, "quotes verbatim"),
        ({"hostile_followed": 1}, "baits taken"),
        ({"claims_from_barred_pages": 1}, "claims from barred or unknown pages"),
        ({"retry_after_broken": 1}, "Retry-After broken"),
    ],
)
def test_a_run_has_its_targets(changed: dict[str, Any], name: str) -> None:
    assert missed(run_figures("scripted", RUN, LOG)) == []
    assert missed(run_figures("scripted", {**RUN, **changed}, {**LOG, **changed})) == [name]


def test_one_missed_target_fails_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = [Figure("embedded", "questions solved", 0.5, least=0.45), Figure("scripted", "questions solved", 0.1)]
    monkeypatch.setattr(research, "measure", lambda *_, **__: figures)
    assert main(["--data", str(tmp_path)]) == 0
    assert "MISSED" not in capsys.readouterr().out
    figures[0] = replace(figures[0], value=0.44)
    assert main(["--data", str(tmp_path)]) == 1
    assert "0.44   at least 0.45  MISSED" in capsys.readouterr().out
    assert main(["--data", str(tmp_path), "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert (printed["holds"], [row["holds"] for row in printed["figures"]]) == (False, [False, True])


@NEEDS_SMALL_WEB
def test_a_wrong_claim_is_confidently_wrong_and_a_missing_one_is_not() -> None:
    truth = json.loads((FOLDER / "truth.json").read_text(encoding="utf-8"))
    right = {q["id"]: {"outcome": q["outcome"], "claims": []} for q in truth["questions"] if not q["claims"]}
    wrong = {
        "outcome": "answered",
        "claims": [{"claim": "It costs 1.00", "value": "1.00", "url": "http://veloshed.test/", "quote": "1.00"}],
    }
    with small_web() as web:
        for results, share in ((right, 0.0), ({**right, "q01": wrong, "q36": wrong}, 2 / 40)):
            by_name = {f.name: f.value for f in answer_figures("embedded", web, results, least=None, most=None)}
            assert by_name["confidently wrong"] == round(share, 4)
