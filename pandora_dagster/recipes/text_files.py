"""Text files that users write: read once per process while they are unchanged, up to a size."""

from functools import lru_cache
from pathlib import Path

from pandora_dagster.documents.plain_yaml import SourceFault

FileStamp = tuple[int, int, int, int]
"""Times of modification and of change in ns, size and inode of a file: different after every edit."""
_MAX_BYTES = 256 * 1024


def read_text(path: Path) -> str | SourceFault:
    """A file's text with `\\n` as line end, or the fault where it cannot be read. An unchanged file is opened once per process."""
    try:
        return _read_unchanged(path, file_stamp(path))
    except OSError as error:
        return SourceFault(1, f"cannot be read: {error.strerror}: expected a file")


def file_stamp(path: Path) -> FileStamp:
    """The stamp of a file; raises OSError. Take it before reading: an edit in between changes the next stamp."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino


@lru_cache(maxsize=256)
def _read_unchanged(path: Path, stamp: FileStamp) -> str | SourceFault:
    """Read a file; `stamp` is the key of the cache, since every edit changes it. Raises OSError, which is not cached."""
    data = path.read_bytes()
    if len(data) > _MAX_BYTES:
        return SourceFault(1, f"{len(data)} bytes: expected at most {_MAX_BYTES}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return SourceFault(data.count(b"\n", 0, error.start) + 1, f"byte {error.start} is not UTF-8: expected UTF-8 text")
    return text.replace("\r\n", "\n") if text.strip() else SourceFault(1, "empty file: expected text")
