"""Files under the store root: written whole or not at all, read up to a limit."""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from pandora_dagster.contracts.turns import MAX_DOCUMENT_BYTES
from pandora_dagster.errors import DocumentError, StoreError

_TEMPORARY_SUFFIX = ".part"
_STRAY_SECONDS = 3_600.0
"""A temporary file older than this belongs to a dead process: a write takes milliseconds."""
_DISK_REASONS = {
    errno.EROFS: ("the disk is mounted read-only", "name a store root that can be written with PANDORA_ROOT"),
    errno.ENOSPC: ("the disk is full", "free some space, then run the same command again; nothing was half written"),
    errno.EDQUOT: ("the disk quota is used up", "free some space, then run the same command again; nothing was half written"),
    errno.EFBIG: ("the file is larger than the disk or a limit allows", "raise the limit (ulimit -f) or free some space"),
    errno.EACCES: ("no permission", "give this user the right to write there, or name another store root with PANDORA_ROOT"),
    errno.EPERM: ("no permission", "give this user the right to write there, or name another store root with PANDORA_ROOT"),
    errno.ENOTDIR: ("a file is in the place of a folder", "move that file away, or name another store root with PANDORA_ROOT"),
    errno.EEXIST: ("something of that name exists already", "look at it and move it away"),
    errno.ENAMETOOLONG: ("the path is too long", "name a shorter store root with PANDORA_ROOT"),
}


def sha(text: str) -> str:
    """sha256 of a text's UTF-8 bytes, as 64 hex digits."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


@contextmanager
def disk_errors(path: Path, action: str = "cannot write") -> Generator[None]:
    """Turn an OSError into a StoreError with path, reason and remedy; `action` says what failed."""
    try:
        yield
    except OSError as error:
        reason, hint = _DISK_REASONS.get(error.errno or 0, (error.strerror or str(error), ""))
        raise StoreError(f"{error.filename or path}: {action}: {reason}", hint=hint) from error


def write_atomic(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write one file all-or-nothing: a reader of `path` finds the old bytes or the new ones, also after a power failure.

    `durable=False` does not wait for the disk; the file is still never seen half written. Raises StoreError.
    """
    write_all(path.parent, {path.name: data}, durable=durable)


def write_all(folder: Path, contents: Mapping[str, bytes], *, durable: bool = True, durable_names: bool = True) -> None:
    """Write several files of one folder, each all-or-nothing, renamed into place in the given order. Raises StoreError."""
    with disk_errors(folder):
        write_files({folder / name: data for name, data in contents.items()}, durable=durable, durable_names=durable_names)


_MAX_OPEN_FILES = 200
"""Files that one write has open at a time: a process may have 1,024."""


def write_files(contents: Mapping[Path, bytes], *, durable: bool = True, durable_names: bool = True, new_folders: bool = True) -> None:
    """Write files all-or-nothing: the bytes of all to the disk, then each renamed into place, then the names to the disk.

    Files are flushed together, which a journaling file system does in one go. With `durable_names=False` a power failure may bring the
    files back that were there before, whole, until the folder is synced. Raises OSError.
    """
    temporary_paths: dict[Path, Path] = {}
    try:
        for start in range(0, len(contents), _MAX_OPEN_FILES):
            with ExitStack() as opened:
                descriptors: list[int] = []
                for path, data in list(contents.items())[start : start + _MAX_OPEN_FILES]:
                    if new_folders:
                        make_folder(path.parent, durable=durable)
                    temporary_paths[temporary := _temporary_path(path)] = path
                    descriptors.append(write_open(temporary, data))
                    opened.callback(os.close, descriptors[-1])
                for descriptor in descriptors if durable else ():
                    os.fsync(descriptor)
        for temporary, path in temporary_paths.items():
            os.replace(temporary, path)  # noqa: PTH105 - one primitive, the same that the kill tests count
    except BaseException:
        _remove_quietly(temporary_paths)
        raise
    for folder in dict.fromkeys(path.parent for path in contents) if durable and durable_names else ():
        sync(folder)


def write_new(path: Path, data: bytes, *, durable: bool) -> None:
    """Write a file that no reader knows yet; raises OSError."""
    descriptor = write_open(path, data)
    try:
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_open(path: Path, data: bytes) -> int:
    """Write a new file and return its open descriptor, for the caller to sync and close; raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        unwritten = memoryview(data)
        while unwritten:
            unwritten = unwritten[os.write(descriptor, unwritten) :]
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def make_folder(folder: Path, *, durable: bool = True) -> None:
    """Create a folder and its parents where they are missing, and wait until their names are on the disk; raises OSError."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folder(folder.parent, durable=durable)
    folder.mkdir(exist_ok=True)
    if durable:
        sync(folder.parent)


def sync(path: Path) -> None:
    """Wait until a file's bytes, or the names in a folder, are on the disk; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_bytes(path: Path, *, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
    """The bytes of a file; raises DocumentError (`missing` where there is none), also for one larger than `limit`."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError as error:
        raise DocumentError(f"{path}: missing: expected the document that its manifest names", missing=True) from error
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror}: expected a readable file") from error
    if len(data) > limit:
        raise DocumentError(f"{path}: {size:,} bytes: expected at most {limit:,}")
    return data


def decode_text(data: bytes, where: str | Path, *, may_be_empty: bool = False) -> str:
    """The text of a document's bytes, line ends unchanged; raises DocumentError."""
    if not data and not may_be_empty:
        raise DocumentError(f"{where}: empty: expected a document")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DocumentError(f"{where}: byte {error.start}: not UTF-8: expected UTF-8 text") from error


def read_text(path: Path, *, limit: int = MAX_DOCUMENT_BYTES, may_be_empty: bool = False) -> str:
    """The text of a document, line ends unchanged; raises DocumentError (`missing` where there is none)."""
    return decode_text(read_bytes(path, limit=limit), path, may_be_empty=may_be_empty)


def encode_text(name: str, text: str) -> bytes:
    """A document's bytes as they go to the disk; raises DocumentError where it could not be read back."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise DocumentError(f"{name}: character {error.start}: a lone surrogate: expected Unicode text") from error
    if len(data) > MAX_DOCUMENT_BYTES:
        raise DocumentError(f"{name}: {len(data):,} bytes: expected at most {MAX_DOCUMENT_BYTES:,}")
    return data


def path_inside(root: Path, path: Path) -> Path:
    """`path`; raises StoreError where a symbolic link in it leads out of `root`."""
    if not _may_leave(str(root), str(path)):
        return path
    real_root, real = os.path.realpath(root), os.path.realpath(path)
    if real != real_root and not real.startswith(real_root + os.sep):
        raise StoreError(f"{path}: a link leads to {real}: expected a path inside {real_root}", hint="remove the link")
    return path


def document_path_inside(root: Path, path: Path) -> Path:
    """`path_inside` for one document: raises DocumentError, which does not stop the work on others."""
    try:
        return path_inside(root, path)
    except StoreError as error:
        raise DocumentError(str(error), hint=error.hint) from error


_NOT_CHILDREN = frozenset({"", ".", ".."})
"""Names in a path that lead to no child of the folder before them."""


def _may_leave(root: str, path: str) -> bool:
    """Whether `path` may be outside `root`: it is not below it, or a part of it is a link or `..`.

    `path_inside` runs for every file, and this check takes a fifth of the time of two `os.path.realpath`.
    """
    if not path.startswith(root + os.sep):
        return True
    names = path[len(root) + 1 :].split(os.sep)  # noqa: PTH206 - faster than Path
    if not _NOT_CHILDREN.isdisjoint(names):
        return True
    partial_path = root
    for name in names:
        partial_path = f"{partial_path}{os.sep}{name}"
        try:
            if stat.S_ISLNK(os.lstat(partial_path).st_mode):
                return True
        except OSError:
            return False  # nothing exists there or below
    return False


def remove_strays(folder: Path, *, now: float) -> int:
    """Delete the temporary files of crashed writes in `folder`; recent ones may be in use and stay. Returns the number."""
    with disk_errors(folder, "cannot clean up"):
        strays = [entry for entry in folder.iterdir() if is_stray(entry.name)] if folder.is_dir() else []
        old_strays = [entry for entry in strays if _modified(entry) < now - _STRAY_SECONDS]
        _remove_quietly(old_strays)
    return len(old_strays)


def is_stray(name: str) -> bool:
    """Whether a file of this name is the temporary file of a write."""
    return name.startswith(".") and name.endswith(_TEMPORARY_SUFFIX)


def _temporary_path(path: Path) -> Path:
    # The random part only keeps two writers apart; nothing depends on its value.
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}{_TEMPORARY_SUFFIX}")


def _modified(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _remove_quietly(paths: Iterable[Path]) -> None:
    """Delete files and folders; those that cannot be deleted stay."""
    for path in paths:
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
