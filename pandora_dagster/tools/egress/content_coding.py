"""Takes the content coding off a body while it arrives, so that a small body cannot unpack to a large one."""

import zlib
from collections.abc import Iterable

from pandora_dagster.errors import FetchFailedError, FetchRefusedError

ACCEPTED_CODINGS = "gzip, deflate"
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_GZIP_MARK = b"\x1f\x8b"
_RAW_DEFLATE = -15
"""What some servers send as `deflate`: no zlib header."""


def read_body(chunks: Iterable[bytes], coding: str, *, max_bytes: int, where: str) -> bytes:
    """The decoded body; raises FetchRefusedError over `max_bytes` or for a coding that was not asked for, FetchFailedError for a damaged
    one. `where` names the page in messages."""
    name = coding.strip().lower()
    body = bytearray()
    unpacker = None
    if name not in ("", "identity"):
        if name not in _WINDOW_BITS:
            raise FetchRefusedError(f"{where}: content encoding {name[:40]!r}: expected {ACCEPTED_CODINGS}", rule="content encoding")
        unpacker = _Unpacker(_WINDOW_BITS[name])
    try:
        for chunk in chunks:
            body += unpacker.unpack(chunk, max_bytes - len(body) + 1) if unpacker else chunk
            if len(body) > max_bytes:
                raise FetchRefusedError(f"{where}: over {max_bytes:,} bytes: expected at most so many", rule="size")
    except zlib.error as error:
        raise FetchFailedError(f"{where}: damaged {name}: {error}") from error
    if unpacker and unpacker.is_cut_off:
        raise FetchFailedError(f"{where}: the {name} body ends too early", retryable=True)
    return bytes(body)


class _Unpacker:
    """Unpacks the members of a gzip or zlib stream, one after the other."""

    def __init__(self, window_bits: int) -> None:
        self._window_bits = window_bits
        self._stream = zlib.decompressobj(window_bits)
        self._has_begun = False

    @property
    def is_cut_off(self) -> bool:
        return self._has_begun and not self._stream.eof

    def unpack(self, data: bytes, limit: int) -> bytes:
        """At most `limit` bytes of the text in `data`: the caller stops where it gets as many."""
        text = bytearray()
        while data and len(text) < limit:
            if self._stream.eof:
                if not data.startswith(_GZIP_MARK):
                    break  # padding after the last member
                self._stream = zlib.decompressobj(self._window_bits)
            try:
                text += self._stream.decompress(data, limit - len(text))
            except zlib.error:
                if self._has_begun or self._window_bits != _WINDOW_BITS["deflate"]:
                    raise
                self._window_bits = _RAW_DEFLATE
                self._stream = zlib.decompressobj(_RAW_DEFLATE)
                continue
            self._has_begun = True
            data = self._stream.unused_data
        return bytes(text)
