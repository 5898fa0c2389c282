"""The guard on speed fails where a ratio got worse by more than a third, and nowhere else."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.guard import KEPT, Guarded, guards, main, spent

NAME = "a work"
Runs = Callable[..., int]


@contextmanager
def costs(*ours: float) -> Iterator[tuple[Callable[[], float], Callable[[], float]]]:
    """Ours costs each of these once, then the last one; theirs costs 1."""
    left = list(ours)
    yield lambda: left.pop(0) if len(left) > 1 else left[0], lambda: 1.0


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """The exit code over one ratio; the file keeps 3.0 for it."""
    file = tmp_path / "guard.json"
    file.write_text(json.dumps({"ratios": {NAME: 3.0}}))

    def run(*ours: float, name: str = NAME, arguments: tuple[str, ...] = ()) -> int:
        return main([*arguments], guarded=lambda _: (Guarded(name, "another", 3, costs(*ours)),), file=file)

    return run


@pytest.mark.parametrize(("ours", "code"), [(1.0, 0), (3.0, 0), (3.9, 0), (4.1, 1), (9.0, 1)])
def test_a_third_more_is_allowed_and_no_more(runs: Runs, ours: float, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The table names the work, both ratios and what is allowed."""
    assert runs(ours) == code
    out = capsys.readouterr().out
    assert f"| {NAME} | another | {ours:.2f} | 3.00 | 4.00 |" in out and ("WORSE" in out) == bool(code)


def test_one_busy_moment_fails_nothing(runs: Runs) -> None:
    """What was worse is measured once more: four runs, of which one warms up, and four again."""
    assert runs(*[9.0] * 4, 3.0) == 0
    assert runs(*[9.0] * 8, 3.0) == 1


def test_a_ratio_that_the_file_does_not_keep_fails(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert runs(1.0, name="another work") == 1 and "not kept" in capsys.readouterr().out


def test_new_ratios_are_kept_with_a_reason_only(runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        runs(9.0, arguments=("--update", " "))
    assert "expected the reason" in capsys.readouterr().err and runs(9.0) == 1
    assert runs(9.0, arguments=("--update", "it does more")) == 0 and runs(9.0) == 0
    kept = json.loads((tmp_path / "guard.json").read_text())
    assert kept["ratios"] == {NAME: 9.0} and kept["reason"] == "it does more"


def test_the_file_keeps_what_is_guarded(tmp_path: Path) -> None:
    assert set(json.loads(KEPT.read_text("utf-8"))["ratios"]) == {each.name for each in guards(tmp_path)}


def test_twice_the_work_is_twice_the_time() -> None:
    """What is compared is processor time: a wait costs nothing."""

    def work(times: int) -> None:
        for _ in range(times):
            sorted(str(number) for number in range(20_000))

    ratio = min(spent(lambda: work(20))() for _ in range(3)) / min(spent(lambda: work(10))() for _ in range(3))
    assert 1.4 < ratio < 2.8
