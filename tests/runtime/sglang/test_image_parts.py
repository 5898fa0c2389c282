"""Packs with images: how the SGLang runtime sends them, and which runtimes refuse them."""

import asyncio
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

import pytest

from pandora_dagster.contracts.images import ImagePart
from pandora_dagster.errors import InputError, ModelRejectedError
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.runtime.sglang.completion_requests import tokenize_request
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.runtime.fake_sglang import FakeSglang
from tests.runtime.sglang_packs import ask, endpoints, exchange, pack, run

PNG = ImagePart("page.png", "image/png", 300, b"\x89PNG")
JPEG = ImagePart("photo.jpg", "image/jpeg", 85, b"\xff\xd8")
USER = "<query>\nWhat next?\n</query>"


class Words:
    def count(self, text: str) -> int:
        return len(text.split())


def test_images_are_content_parts_after_the_text() -> None:
    """The system message stays a text; the user message has the text first, then each image as a data URL, in order."""
    server = FakeSglang()
    exchange(server, pack(images=(PNG, JPEG)), images=True)
    system, user = server.requests[0]["messages"]
    assert system["content"] == "Be exact.\n\nYou plan." and user["role"] == "user"
    assert user["content"] == [
        {"type": "text", "text": USER},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64encode(PNG.data).decode()}"}},
        {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{b64encode(JPEG.data).decode()}"}},
    ]


def test_a_pack_without_images_stays_a_text() -> None:
    """A server whose model reads images gets plain strings as ever."""
    server = FakeSglang()
    exchange(server, images=True)
    assert server.requests[0]["messages"][1]["content"] == USER


@pytest.mark.parametrize("settings", [{}, {"images": False}, {"chat": False, "images": True}])
def test_a_text_model_refuses_images_before_anything_is_sent(settings: dict[str, Any]) -> None:
    """Without `images`, or without a chat template: the error names the layer, and the hint says what to change."""

    async def asked() -> FakeSglang:
        async with FakeSglang() as server:
            with pytest.raises(ModelRejectedError, match=r"MIND at .*: pipeline/planner_chat: 1 images: expected a pack of text") as error:
                await ask(server, pack(images=(PNG,)), **settings)
            assert "images: true" in error.value.hint
            return server

    assert run(asked).requests == []


def test_the_embedded_runtime_refuses_images() -> None:
    runtime = ExtractiveRuntime(Words(), lambda: datetime.now(UTC))
    with pytest.raises(ModelRejectedError, match="pipeline/planner_chat: 1 images: the extractive runtime reads text only"):
        asyncio.run(runtime.complete(pack(images=(PNG,)), timeout_s=1.0))


def test_images_count_as_estimated() -> None:
    """The server counts the text, the estimates of the images are added."""

    async def counted() -> tuple[int | None, int | None]:
        async with FakeSglang() as server:
            runtime = SglangRuntime(endpoints(server.base_url, images=True), keys={})
            try:
                return await runtime.count(pack(images=(PNG, JPEG))), await runtime.count(pack())
            finally:
                await runtime.aclose()

    with_images, without = run(counted)
    assert with_images == without + 385
    endpoint = endpoints("http://127.0.0.1:1/v1", images=True)[pack().layer]
    assert tokenize_request(pack(images=(PNG,)), endpoint) == tokenize_request(pack(), endpoint)


@pytest.mark.parametrize(("media_type", "data"), [("text/html", b"x"), ("image/PNG", b"x"), ("image/png;x", b"x"), ("image/png", b"")])
def test_an_image_has_an_image_type_and_bytes(media_type: str, data: bytes) -> None:
    with pytest.raises(InputError, match="expected"):
        ImagePart("a.png", media_type, 1, data)
