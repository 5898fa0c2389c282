"""`pandora api` with OpenAI's JavaScript client, as a chat front end in a browser or in Node uses it."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.api.turn_request import MODELS
from tests.api.server_process import started

PROGRAM = Path(__file__).parent / "javascript" / "client.mjs"
CLIENT = "openai@7.57.0"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program printed; the client is installed into a temporary folder."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        pytest.skip("Node.js with npm is not installed")
    folder = tmp_path_factory.mktemp("javascript")
    (folder / "package.json").write_text('{"private": true}')
    install = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", CLIENT]
    installed = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if installed.returncode:
        pytest.skip(f"{CLIENT} cannot be installed here")
    program = shutil.copy(PROGRAM, folder)
    with started(folder / "store") as api:
        done = subprocess.run([node, program, f"{api.url}/v1"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_answer_comes_whole_and_streamed(results: dict[str, Any]) -> None:
    """`user` and `metadata` are honoured; the second request goes on in the session of the first, which no header names."""
    assert "$ 742" in results["answer"] and results["finish"] == "stop"
    assert results["metadata"] == {"ticket": "17"} and results["turn"] == "jan:turn_000002"
    assert "oak desk" in results["streamed"] and results["usage"]["prompt_tokens"] > 100


def test_a_response_goes_on_from_the_one_before(results: dict[str, Any]) -> None:
    assert results["events"][0] == "response.created" and results["events"][-1] == "response.completed"
    assert "3 May 2026" in results["response"] and results["previous"]
    first, second = results["sessions"]
    assert first == second


def test_models_and_errors_are_the_clients_own(results: dict[str, Any]) -> None:
    assert results["names"] == list(MODELS)
    fault = results["fault"]
    assert (fault["kind"], fault["status"], fault["param"], fault["code"]) == ("NotFoundError", 404, "model", "model_not_found")
    assert "gpt-9" in fault["message"]
