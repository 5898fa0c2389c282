"""The example of docs/guides/chat-clients.md, as the page shows it."""

import re
import subprocess
import sys
from pathlib import Path

from tests.api.server_process import started
from tests.faults.processes import environment

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "chat-clients.md"


def test_the_documented_example_prints_an_answer(tmp_path: Path) -> None:
    """Run by a program of its own; only the port is another. What was said before is cited."""
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    with started(tmp_path / "store") as api:
        own = example.replace("http://127.0.0.1:8400", api.url)
        assert own != example
        environ = environment(tmp_path) | {"NO_PROXY": "127.0.0.1"}
        done = subprocess.run([sys.executable, "-c", own], env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "$ 742" in done.stdout and done.stdout.endswith("[1] turn_000001")
