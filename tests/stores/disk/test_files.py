"""Whole files: written at once, read within bounds, strays removed only when nobody can still need them."""

import os

import pytest

from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.disk.files import encode_text, is_stray, path_inside, read_text, remove_strays, write_all, write_atomic


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_is_written_whole_and_leaves_nothing_beside_it(tmp_path):
    """New folders are made; the old bytes are replaced; no temporary file stays."""
    path = tmp_path / "a" / "b" / "x.md"
    write_atomic(path, b"one")
    write_atomic(path, b"zwei\r\n", durable=False)
    assert read_text(path) == "zwei\r\n"
    assert names(path.parent) == ["x.md"]


def test_several_files_are_put_in_place_only_when_all_are_written(tmp_path):
    """One that cannot be written keeps the others as they were."""
    write_all(tmp_path, {"a.md": b"old"})
    (tmp_path / "b.md").write_text("I am a file")
    with pytest.raises(StoreError, match=r"exists already|a file is in the place"):
        write_all(tmp_path, {"a.md": b"new", "b.md/c.md": b"new"})
    assert (tmp_path / "a.md").read_bytes() == b"old"
    assert names(tmp_path) == ["a.md", "b.md"]


BAD = {
    "missing": (None, "missing: expected"),
    "empty": (b"", "empty: expected"),
    "not UTF-8": (b"ab\xff", "byte 2: not UTF-8: expected"),
    "too large": (b"x" * 101, "101 bytes: expected at most 100"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_reported_with_path_and_reason(tmp_path, case):
    """DocumentError: where, what, what was expected; `missing` only where there is no file."""
    data, says = BAD[case]
    path = tmp_path / "x.md"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(DocumentError, match=says) as caught:
        read_text(path, limit=100)
    assert str(path) in str(caught.value) and caught.value.missing == (data is None)


def test_what_could_not_be_read_back_is_not_written():
    """A lone surrogate and a text over the bound are refused before the disk is touched."""
    with pytest.raises(DocumentError, match=r"x\.md: character 1: a lone surrogate"):
        encode_text("x.md", "a\ud800")
    with pytest.raises(DocumentError, match="expected at most"):
        encode_text("x.md", "x" * (32 * 1024 * 1024 + 1))


def test_links_are_followed_inside_the_root_only(tmp_path):
    """A link to a place inside is fine, also where the root itself is a link; one that leads out is refused."""
    (tmp_path / "root" / "in").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(tmp_path / "root")
    (tmp_path / "root" / "near").symlink_to(tmp_path / "root" / "in")
    (tmp_path / "root" / "far").symlink_to(tmp_path)
    (tmp_path / "root2").mkdir()
    root = tmp_path / "alias"
    assert path_inside(root, root / "near" / "x.md") == root / "near" / "x.md"
    for path in (root / "far" / "x.md", root / ".." / "root2" / "x.md"):
        with pytest.raises(StoreError, match="a link leads to"):
            path_inside(root, path)


def test_only_old_strays_are_removed(tmp_path):
    """A young temporary file may be a living process's; documents are never touched, whatever their age."""
    ages = {".x.md.0a.part": 7_200, ".young.0a.part": 10, "x.md": 7_200, ".lock": 7_200, "notes.part": 7_200}
    for name, age in ages.items():
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1_000_000 - age, 1_000_000 - age))
    (tmp_path / ".turn_000001.ab.part").mkdir()
    os.utime(tmp_path / ".turn_000001.ab.part", (0, 0))
    assert remove_strays(tmp_path, now=1_000_000) == 2
    assert names(tmp_path) == [".lock", ".young.0a.part", "notes.part", "x.md"]
    assert is_stray(".young.0a.part") and not is_stray("x.md") and remove_strays(tmp_path / "none", now=0) == 0
