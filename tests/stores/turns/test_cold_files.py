"""Cold objects: the same bytes for the same files, nothing damaged comes back, nothing is written outside."""

import errno
import io
import os
import subprocess
import tarfile
from hashlib import sha256

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.contracts.archive_records import ArchiveRecord, ColdObject
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.turns.cold_files import ColdFiles, build_tar, read_tar, tar_files

FILES = {
    "turn.json": b"{}\n",
    "context.md": "## 0. User Query\n\nwhat? \N{SNOWMAN}\n\n".encode(),
    f"webpage_cache/{'s' * 100}/{'p' * 100}.json": b"",
}
NAMES = st.from_regex(r"(revisions/[1-9]/)?(webpage_cache/[a-z]{1,100}/)?[a-z0-9]{1,100}\.(md|json)", fullmatch=True)


def thing(files=FILES, number=1, user="anna"):
    return ColdObject(TurnKey(user, number), "2026-01-04", files)


def record_of(place, files=FILES):
    hashes = {name: sha256(data).hexdigest() for name, data in files.items()}
    return ArchiveRecord(
        archived_at="2026-02-04T02:00:00Z",
        day="2026-01-04",
        was="saved",
        cold=place.path,
        sha256=place.sha256,
        size=place.size,
        files=hashes,
    )


@pytest.fixture
def cold(tmp_path):
    return ColdFiles(tmp_path)


@given(st.dictionaries(NAMES, st.binary(max_size=2_000), min_size=1, max_size=6))
def test_the_same_files_make_the_same_tar(files):
    """Whatever their order, and read back name by name, with nobody's name and no time in it."""
    made = build_tar(files)
    assert made == build_tar(dict(reversed(files.items())))
    with tarfile.open(fileobj=io.BytesIO(made)) as tar:
        members = tar.getmembers()
        assert {m.name: tar.extractfile(m).read() for m in members} == files
        assert {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode) for m in members} == {(0, 0, 0, "", "", 0o644)}


def test_an_object_lies_under_its_hash_and_comes_back(cold, tmp_path):
    """Several at once; the path says user, year and month."""
    other = {**FILES, "turn.json": b"[]"}
    one, two = cold.put([thing(), thing(other, 2)])
    assert one.path == f"cold/anna/2026/01/{one.sha256}.tar.zst" and (tmp_path / one.path).stat().st_size == one.size
    assert cold.read(record_of(one)) == FILES and cold.read(record_of(two, other)) == other
    assert cold.verify(record_of(one)) == ""
    assert not list(tmp_path.rglob("*.part"))


def test_putting_an_object_twice_changes_nothing(cold, tmp_path):
    """The file that stands there whole stays the file it is."""
    (place,) = cold.put([thing()])
    before = (tmp_path / place.path).stat().st_ino
    assert cold.put([thing()]) == (place,) and (tmp_path / place.path).stat().st_ino == before


def test_tar_opens_an_object_without_this_program(cold, tmp_path):
    """`tar --zstd -xf`, in two steps, for a machine whose tar finds no zstd: the frame is plain zstd, what is in it a plain tar."""
    (place,) = cold.put([thing()])
    (tmp_path / "out").mkdir()
    with (tmp_path / place.path).open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed) as plain:
        subprocess.run(["tar", "-xf", "-", "-C", str(tmp_path / "out")], input=plain.read(), check=True)
    assert {p.relative_to(tmp_path / "out").as_posix(): p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()} == FILES


def bomb(data):
    return zstandard.ZstdCompressor().compress(b"\0" * 600 * 1024 * 1024)


def other_object(data):
    return zstandard.ZstdCompressor().compress(build_tar({"turn.json": b"another turn's"}))


DAMAGES = {
    "cut off": (lambda d: d[: len(d) // 2], "damaged or cut off"),
    "empty": (lambda d: b"", "damaged or cut off"),
    "one bit": (lambda d: d[:-20] + bytes([d[-20] ^ 1]) + d[-19:], "damaged or cut off|its content has"),
    "another's": (other_object, "another object's or damaged"),
    "not zstd": (lambda d: b"hello" * 100, "damaged or cut off"),
    "a bomb": (bomb, "its header states 629,145,600 bytes"),
    "something behind it": (lambda d: d + b"x", "damaged or cut off"),
}


@pytest.mark.parametrize(("damage", "says"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_object_is_named_and_written_anew_by_the_next_archival(cold, tmp_path, damage, says):
    """Nothing of it comes back; the others are unharmed; where its originals still lie in the folder it is made whole again."""
    one, two = cold.put([thing(), thing({**FILES, "turn.json": b"[]"}, 2)])
    path = tmp_path / one.path
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DocumentError, match=says) as caught:
        cold.read(record_of(one))
    assert str(path) in str(caught.value) and cold.verify(record_of(one)) == str(caught.value)
    assert cold.verify(record_of(two, {**FILES, "turn.json": b"[]"})) == ""
    cold.put([thing()])
    assert cold.verify(record_of(one)) == ""


def test_an_object_that_is_gone_is_missing(cold, tmp_path):
    """`missing` tells it from a damaged one."""
    (place,) = cold.put([thing()])
    (tmp_path / place.path).unlink()
    with pytest.raises(DocumentError, match="missing") as caught:
        cold.read(record_of(place))
    assert caught.value.missing


def test_a_record_that_names_other_files_is_refused(cold):
    """Object and manifest must name the same files with the same hashes."""
    (place,) = cold.put([thing()])
    for files, says in (
        ({"turn.json": b"{}\n"}, "does not name it"),
        ({**FILES, "x.md": b""}, "not in the object"),
        ({**FILES, "turn.json": b"?"}, "expected"),
    ):
        with pytest.raises(DocumentError, match=says):
            cold.read(record_of(place, files))


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "users/anna/turns/turn_000001/context.md", "cold/../users/x"])
def test_a_record_cannot_lead_out_of_cold_storage(cold, path):
    """Its path is data, never a way elsewhere."""
    (place,) = cold.put([thing()])
    with pytest.raises(DocumentError, match="expected a path below cold/"):
        cold.read(record_of(place).model_copy(update={"cold": path}))


@pytest.mark.parametrize("link", ["cold", "cold/anna", "cold/anna/2026", "cold/anna/2026/01"])
def test_a_link_in_the_way_writes_nothing_elsewhere(cold, tmp_path, link):
    """A link out of the root, at any folder."""
    (outside := tmp_path.parent / f"{tmp_path.name}-outside").mkdir()
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(outside)
    with pytest.raises((DocumentError, StoreError), match="link"):
        cold.put([thing()])
    assert not list(outside.rglob("*"))


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
@pytest.mark.parametrize(("number", "says"), [(errno.ENOSPC, "full"), (errno.EROFS, "read-only")])
def test_a_refusing_disk_leaves_nothing_half_written(cold, tmp_path, monkeypatch, step, number, says):
    """StoreError with path, reason and remedy; afterwards it works."""

    def refuse(*_args, **_kwargs):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, step, refuse)
        with pytest.raises(StoreError, match=says) as caught:
            cold.put([thing(), thing({**FILES, "turn.json": b"[]"}, 2)])
    assert caught.value.hint and not list(tmp_path.rglob("*.part")) and not list(tmp_path.rglob("*.zst"))
    assert len(cold.put([thing()])) == 1


def test_a_disk_that_gives_other_bytes_back_is_caught(cold, monkeypatch):
    """The object is read back before anything else may change."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(len(data))))
    with pytest.raises((StoreError, DocumentError)):
        cold.put([thing()])


def sparse_tar(kind):
    """A tar of under a kilobyte whose only member claims 20 GB, or whose sparse map is no number."""
    member = tarfile.TarInfo("context.md")
    if kind == "old GNU":
        member.type, member.size = tarfile.GNUTYPE_SPARSE, 0
        block = bytearray(member.tobuf(tarfile.GNU_FORMAT))
        block[386:398], block[398:410] = b"%011o\0" % 0, b"%011o\0" % 0
        block[483:495] = b"\x80" + (20 * 2**30).to_bytes(11, "big")
        block[148:156] = b"%06o\0 " % (256 + sum(block[:148]) + sum(block[156:512]))
        return bytes(block) + bytes(1024)
    sizes = {"PAX": "0,0", "PAX without a number": "x,y", "negative": "0,0"}[kind]
    member.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.map": sizes, "GNU.sparse.size": str(20 * 2**30)}
    if kind == "negative":
        member.pax_headers = {"size": "-1024"}
    return member.tobuf(tarfile.PAX_FORMAT) + bytes(1024)


@pytest.mark.parametrize("kind", ["old GNU", "PAX", "PAX without a number", "negative"])
def test_a_member_that_claims_more_than_its_tar_is_refused(tmp_path, kind):
    """88 bytes, packed, took all memory in `forget`, `show` and `archive verify`."""
    path = tmp_path / "cold.tar.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(sparse_tar(kind)))
    with pytest.raises(DocumentError, match=r"plain file|no tar inside"):
        tar_files(read_tar(path), path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_link_in_a_pack_is_refused(tmp_path, kind):
    """It would bring back the text of another member or, unpacked, of any file of the machine, under the name of a document."""
    path, target = tmp_path / "cold.tar.zst", tmp_path / "secret.md"
    target.write_text("secret")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        member = tarfile.TarInfo("turn.json")
        member.size = 3
        tar.addfile(member, io.BytesIO(b"{}\n"))
        link = tarfile.TarInfo("context.md")
        link.type, link.linkname = kind, str(target) if kind == tarfile.SYMTYPE else "turn.json"
        tar.addfile(link)
    path.write_bytes(zstandard.ZstdCompressor().compress(packed.getvalue()))
    with pytest.raises(DocumentError, match=r"cold\.tar\.zst: 'context\.md': not a plain file of at most .* bytes: expected those only"):
        tar_files(read_tar(path), path)
