"""Compressions in other processes: the same texts, whatever becomes of the processes."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.errors import InputError
from pandora_dagster.execution.fit.compression_contract import CompressionContract, compress_structurally
from pandora_dagster.execution.fit.worker_pool import CompressionWorkerPool, spare_processor_count
from pandora_dagster.runtime.token_counter import TokenCounter
from tests.execution.conftest import VOCABULARY

LINES = "\n\n".join(
    f"Offer {n}: the oak desk from Miller costs ${400 + n} and does not arrive before 2026-01-{10 + n % 20}." for n in range(60)
)


@pytest.fixture(scope="module")
def contract() -> CompressionContract:
    return CompressionContract(CompressionRequest(LINES, content_type=ContentType.GENERIC, target=600), TokenCounter(VOCABULARY))


@pytest.fixture
def apart(contract):
    told: list[str] = []
    apart = CompressionWorkerPool(2, contract.counter, told.append, os.environ)
    yield apart, told
    apart.close()


def changed(contract: CompressionContract, **fields) -> CompressionContract:
    return replace(contract, request=replace(contract.request, **fields))


def made(apart: CompressionWorkerPool, *contracts: CompressionContract):
    async def work():
        return await asyncio.gather(*(apart(one, one.counter.count(one.request.text)) for one in contracts))

    return asyncio.run(work())


def workers(parent: int | None = None) -> list[int]:
    """The processes that compress for a process, this one by default; threads and processes may end meanwhile."""
    found: list[int] = []
    for thread in Path(f"/proc/{parent or os.getpid()}/task").iterdir():
        with suppress(OSError):
            children = (thread / "children").read_text().split()
            found += [int(child) for child in children if "execution.fit.worker_pool" in _command(child)]
    return found


def _command(process: str) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


def test_the_text_and_its_verdicts_are_those_of_this_process(apart, contract):
    """A text that is shortened, and one that HALTs."""
    shortened, halted = contract, changed(contract, text=f"Error: disk 7 failed.\n\n{LINES}", target=4)
    assert made(apart[0], shortened, halted) == [
        compress_structurally(one, one.counter.count(one.request.text)) for one in (shortened, halted)
    ]
    assert len(workers()) == 2 and apart[1] == []


def test_a_process_that_dies_loses_no_text(apart, contract):
    """Told once; from then on this process shortens."""
    several = [changed(contract, target=target) for target in range(500, 600, 10)]
    expected = [compress_structurally(one, one.counter.count(one.request.text)) for one in several]
    assert made(apart[0], contract)
    for process in workers():
        os.kill(process, signal.SIGKILL)
    assert made(apart[0], *several) == expected == made(apart[0], *several)
    assert len(apart[1]) == 1 and "a process that compressed texts has ended" in apart[1][0]


def test_a_target_that_is_none_is_refused_as_ever(apart, contract):
    with pytest.raises(InputError, match="expected at least 1 token"):
        made(apart[0], changed(contract, target=0))


@pytest.mark.parametrize("texts", [1, 1_000])
def test_they_end_with_the_process_that_asked(tmp_path, texts):
    """However it ends, and in the middle of a text that takes many seconds too."""
    script = tmp_path / "asks.py"
    script.write_text(
        f"""
import asyncio, os, time
from pathlib import Path
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.execution.fit.worker_pool import CompressionWorkerPool
from pandora_dagster.execution.fit.compression_contract import CompressionContract
from pandora_dagster.runtime.token_counter import TokenCounter

if __name__ == "__main__":
    text = "\\n\\n".join({LINES!r}.replace("Offer", f"Offer {{n}}.") for n in range({texts}))
    contract = CompressionContract(CompressionRequest(text, target=600 * {texts}), TokenCounter(Path({str(VOCABULARY)!r})))
    apart = CompressionWorkerPool(1, contract.counter, print, os.environ)
    asyncio.run(apart(contract, 2000 * {texts}))
    print("made", flush=True)
    time.sleep(100)
"""
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen([sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, text=True) as asks:
        assert asks.stdout
        if texts == 1:
            assert asks.stdout.readline() == "made\n"
        else:
            _until(lambda: any(_processor_seconds(one) > 3 for one in workers(asks.pid)), within_s=60)
        (worker,) = workers(asks.pid)
        asks.kill()
    _until(lambda: not _lives(worker), within_s=4)


def test_a_text_that_takes_longer_than_its_time_is_left_out_and_the_next_one_is_compressed(contract):
    """Its process is ended; it took this process, and so the whole run, before."""
    told: list[str] = []
    expected = [compress_structurally(contract, contract.counter.count(contract.request.text))]
    with closing(CompressionWorkerPool(1, contract.counter, told.append, os.environ)) as apart:
        assert made(apart, contract) == expected
        (worker,) = workers()
        os.kill(worker, signal.SIGSTOP)
        apart._timeout_s = 1  # from here on: its start may take longer
        (late,) = made(apart, contract)
        assert late.text is None and late.halted == "no compression within 1 s" and late.is_late
        apart._timeout_s = 60
        assert made(apart, contract) == expected and told == []
        assert worker not in workers()
    assert not _lives(worker)


def test_a_short_text_needs_no_process(contract):
    with closing(CompressionWorkerPool(1, contract.counter, print, os.environ, min_tokens=1_000_000)) as apart:
        assert made(apart, contract) == [compress_structurally(contract, contract.counter.count(contract.request.text))]
        assert workers() == []


def test_closing_ends_one_that_is_stopped(contract):
    with closing(CompressionWorkerPool(1, contract.counter, print, os.environ)) as apart:
        made(apart, contract)
        (worker,) = workers()
        os.kill(worker, signal.SIGSTOP)
    assert not _lives(worker)


def _until(true: Callable[[], object], *, within_s: float) -> None:
    limit = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.05)


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def _lives(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


def test_one_processor_is_left_to_the_process_that_asks(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 3, 5})
    assert spare_processor_count() == 2
