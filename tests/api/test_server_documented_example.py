"""The examples of docs/guides/chat-clients.md, as the page shows them."""

import re
import subprocess
import sys
from pathlib import Path

from tests.api.server_process import started
from tests.faults.processes import environment

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "chat-clients.md"


def test_the_documented_examples_print_an_answer(tmp_path: Path) -> None:
    """Each run by a program of its own; only the port is another. What was said before is cited."""
    examples = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    printed: list[str] = []
    with started(tmp_path / "store") as api:
        for example in examples:
            own = example.replace("http://127.0.0.1:8400", api.url)
            assert own != example
            environ = environment(tmp_path) | {"NO_PROXY": "127.0.0.1"}
            done = subprocess.run([sys.executable, "-c", own], env=environ, capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, done.stderr
            printed.append(done.stdout.rstrip())
    chat, response = printed
    assert "$ 742" in chat and chat.endswith("[1] turn_000001")
    assert "3 May 2026" in response and response.endswith("[1] turn_000001")
