"""Images beside the text of a model call."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from pandora_dagster.errors import InputError

EMBEDDED_PICTURE_FAULT = "the embedded runtime reads no pictures: configure the layer EYES with a model that does"
_IMAGE_TYPE = re.compile(r"image/[a-z0-9][a-z0-9.+-]{0,79}")


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image beside the text of a call: its bytes, or the vault's reference to them."""

    name: str
    media_type: str
    """Such as `image/png`."""
    tokens: int
    """Estimate of what the image costs of the model's context."""
    data: bytes = b""
    reference: str = ""

    def __post_init__(self) -> None:
        if not _IMAGE_TYPE.fullmatch(self.media_type):
            raise InputError(f"image {self.name[:80]}: media type {self.media_type[:80]!r}: expected one such as image/png")
        if not self.data and not self.reference:
            raise InputError(f"image {self.name[:80]}: empty: expected bytes or a reference to stored bytes")


_PATCH_PX = 28
"""Pixels on a side of what Qwen2-VL reads as one token; Qwen3-VL and others read larger patches, so that this is an upper limit."""


def picture_tokens(width: int, height: int) -> int:
    """The estimated tokens of a picture of so many pixels."""
    return ceil(width / _PATCH_PX) * ceil(height / _PATCH_PX)


def fitting_width(width: int, height: int, tokens: int) -> int:
    """The largest width, at most `width`, at which a picture of this shape costs at most `tokens`; 0 where none does."""
    return next((w for w in range(width, 0, -1) if picture_tokens(w, ceil(w * height / width)) <= tokens), 0)


def image_tokens(images: Iterable[ImagePart]) -> int:
    """The estimated tokens of all images."""
    return sum(image.tokens for image in images)
