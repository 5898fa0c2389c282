"""Images beside the text of a model call."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pandora_dagster.errors import InputError

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


def image_tokens(images: Iterable[ImagePart]) -> int:
    """The estimated tokens of all images."""
    return sum(image.tokens for image in images)
