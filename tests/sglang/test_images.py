"""A screenshot through the recipe of the layer EYES to a real server whose model reads images.

The model is random: what it says is nonsense. What is held here is that the server takes the request, and how many tokens an image costs.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.app.web.screenshot_reader import RECIPE, open_screenshot_reader
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.images import picture_tokens
from pandora_dagster.contracts.model_calls import CallSite
from pandora_dagster.documents.webpages.page_reader import read_page
from pandora_dagster.settings import load_settings
from tests.documents.webpages.pages import fetched
from tests.fakes.pictures import png
from tests.sglang.real_servers import CONTEXT, ENVIRONMENT, RealSglang

MODEL = ENVIRONMENT / "tiny-vision"
ATTEMPTS = 4
"""A random model writes an answer that is too long about once in four times."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealSglang]:
    if not (MODEL / ".made").exists():
        pytest.fail(f"{MODEL.relative_to(ENVIRONMENT.parent)} is missing: make test-sglang builds it", pytrace=False)
    log = tmp_path_factory.mktemp("eyes") / "eyes.log"
    started = RealSglang("eyes", log, {"--mm-attention-backend": "sdpa"}, model_path=MODEL)
    started.start()
    try:
        yield started.ready()
    finally:
        code = started.stop()
    assert code == 0


@pytest.fixture
def app(server: RealSglang, tmp_path: Path) -> Iterator[App]:
    fields = f"base_url: {server.base_url}, model: eyes, context_length: {CONTEXT}, images: true"
    (tmp_path / "runtime.yaml").write_text(f"preset: real\npresets:\n  real:\n    servers:\n      eyes: {{{fields}}}\n")
    opened = open_app(load_settings({"PANDORA_ROOT": str(tmp_path), "PANDORA_RUNTIME": "sglang"}))
    yield opened
    opened.close()


@pytest.mark.parametrize("size", [(280, 140), (1024, 640)])
def test_a_screenshot_is_read(app: App, size: tuple[int, int]) -> None:
    reader = open_screenshot_reader(app)
    assert reader.fault == ""
    page = read_page(fetched("<body><img src=/lamp.png></body>"))
    notices = []
    for _ in range(ATTEMPTS):
        notices.append(app.run(reader.read(page, png(*size), CallSite("visit", user_id("ann")))).page.notices[-1])
        if "was not read" not in notices[-1]:
            break
    else:
        raise AssertionError(notices)
    answered = [record for record in app.calls.between("2000-01-01", "9999-01-01") if record.success]
    assert [record.recipe for record in answered] == [RECIPE.partition("/")[2]]
    text = sum(tokens for name, tokens in answered[0].context_sizes.items() if name != "image")
    assert answered[0].context_sizes["image"] == picture_tokens(*size)
    assert answered[0].spent.prompt >= picture_tokens(*size) + text // 2
