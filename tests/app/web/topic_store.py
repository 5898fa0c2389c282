"""A store with cached research that `pandora research run` made from a web on loopback, and the settings that lead there."""

import json
from pathlib import Path

from pandora_dagster.research.research_record import topic_of
from tests.cli.conftest import Pandora
from tests.tools.egress.conftest import NAMES, Web

QUESTION = "How much does the Vela lamp cost?"
TOPIC = topic_of("Vela", QUESTION)
PAGE = """<!doctype html><html lang="en"><head><title>Vela lamp</title></head><body><main><h1>Vela lamp</h1>
<p>The Vela lamp shines for twelve hours on one charge and is made for long nights on dark roads.</p>
<table><tr><th>Price</th><td>{price} euros</td></tr></table></main></body></html>"""


def serve_price(web: Web, price: str) -> None:
    web.page("a.test/vela", PAGE.format(price=price).encode())


def web_settings(web: Web, folder: Path, **settings: str) -> dict[str, str]:
    """The environment of a store below `folder` whose topics are refreshed."""
    dials = {address: f"127.0.0.1:{web.port}" for answers in NAMES.values() for address in answers}
    (folder / "hosts.json").write_text(json.dumps({"resolver": NAMES, "dial": dials}))
    (folder / "hits.json").write_text(json.dumps({"*": [{"url": "http://a.test/vela", "title": "Vela lamp", "content": "price"}]}))
    return {
        "PANDORA_ROOT": str(folder / "store"),
        "PANDORA_USER": "anna",
        "PANDORA_WEB": "on",
        "PANDORA_WEB_HOSTS": str(folder / "hosts.json"),
        "PANDORA_WEB_DELAY": "0",
        "PANDORA_BROWSER": "off",
        "PANDORA_SEARCH": f"recorded={folder / 'hits.json'}",
        "PANDORA_RESEARCH_REFRESH": "all",
        **settings,
    }


def research(pandora: Pandora, env: dict[str, str], *options: str, question: str = QUESTION) -> None:
    told = pandora("research", "run", question, "--provider", env["PANDORA_SEARCH"], *options, env=env)
    assert told.returncode == 0 and "**Answered.**" in told.stdout, told.stderr
