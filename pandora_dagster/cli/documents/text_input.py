"""Reads a text from a file or from stdin for a command. Raises InputError where it is not UTF-8 text."""

import sys
from pathlib import Path

from pandora_dagster.errors import InputError

_BINARY_CHECK_BYTES = 8_192
"""Bytes at the start that are searched for a zero byte, the mark of a binary file."""


def read_text(file: str) -> str:
    """The text of a file, of stdin for `-`."""
    data = read_bytes(file)
    if b"\0" in data[:_BINARY_CHECK_BYTES]:
        raise InputError(f"{file}: a binary file: expected UTF-8 text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: byte {error.start} is not UTF-8: expected UTF-8 text") from error


def read_bytes(file: str) -> bytes:
    """The bytes of a file, of stdin for `-`."""
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}: expected a file") from error
