"""What README, CONTRIBUTING, the tutorial and the guides show can be run, and prints what they show."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, REPOSITORY, SCENARIOS, blocks, name
from tests.docs.scenario import SHOWN_AS, Scenario, first_missing, steps
from tests.runtime.openai_servers import ollama, on_a_thread, plain_answer


@pytest.mark.parametrize("page", SCENARIOS, ids=name)
def test_the_commands_of_a_page_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One scenario a page, on a fresh store, with the exit codes and the output that the page shows."""
    with model_server(page) as addresses:
        scenario = Scenario(tmp_path, monkeypatch, addresses)
        for block in blocks(page):
            scenario.run(block)


@contextmanager
def model_server(page: Path) -> Iterator[Mapping[str, str]]:
    """For the page about one's own model a server that behaves as Ollama does; the address on the page -> its own."""
    if page.stem != "your-own-model":
        yield {}
        return
    loaded = {"models": [{"name": "qwen3:4b", "context_length": 16_384}]}
    with on_a_thread(ollama(model="qwen3:4b", says=plain_answer, context=16_384, pages={"/api/ps": loaded})) as server:
        yield {"127.0.0.1:11434": f"127.0.0.1:{server.port}"}


@pytest.mark.parametrize("page", [page for page in PAGES if page in SCENARIOS], ids=name)
def test_a_command_that_does_not_run_says_why(page: Path) -> None:
    """`no-run` has a reason; commands stand in `console` blocks behind `$ `, nowhere else."""
    for block in blocks(page):
        if "no-run" in block.options:
            assert block.options.get("reason"), f"{block.place}: no-run without a reason"
        if block.language == "console":
            assert steps(block), f"{block.place}: a console block without a command"
        else:
            assert not re.search(r"^(\$ )?pandora ", block.text, re.MULTILINE), f"{block.place}: a command outside of a console block"


def test_targets_of_the_makefile_run_what_is_run_for_them() -> None:
    """`make run` is `pandora demo`."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    for target, command in SHOWN_AS.items():
        recipe = re.search(rf"^{target.removeprefix('make ')}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
        assert recipe and recipe[1].split() == ["$(BIN)/pandora", *command.split()[1:]]


def test_shown_lines_are_compared_in_order() -> None:
    """`...` matches anything, within a line and between lines; a line that was not printed is named."""
    printed = ["7 turns", "a 0.12 s", "b", "c"]
    assert first_missing(["7 turns", "a ... s", "...", "c"], printed) is None
    assert first_missing(["b", "7 turns"], printed) == "7 turns"
    assert first_missing(["a 0.12"], printed) == "a 0.12"
