"""The vault: what was sent and answered, without credentials, for as long as it is kept."""

import os
from datetime import UTC, datetime, timedelta

import pytest

from pandora_dagster.contracts.ports.record_storage import Vault
from pandora_dagster.errors import BadIdError, DocumentError
from pandora_dagster.stores.calls.vault_files import VaultFiles


@pytest.fixture
def vault(tmp_path) -> Vault:
    return VaultFiles(tmp_path)


def files(root):
    return sorted(p for p in root.rglob("*") if p.is_file())


def test_what_is_kept_reads_back_without_its_credentials(vault, tmp_path):
    """The key is gone from the text and from the bytes on the disk; the rest is verbatim."""
    key = "sk-" + "a1B2" * 8
    ref = vault.keep("anna", "pack", f"Authorization: Bearer {key}\nBooking 8JX2WO costs $697.00 §\n")
    assert vault.read(ref) == "Authorization: [redacted]\nBooking 8JX2WO costs $697.00 §\n"
    assert ref.startswith("anna/pack/")
    assert len(files(tmp_path)) == 1 and key.encode() not in files(tmp_path)[0].read_bytes()


def test_equal_texts_are_kept_once(vault, tmp_path):
    """Per user and kind; keeping it again renews its time."""
    ref = vault.keep("anna", "answer", "x")
    os.utime(files(tmp_path)[0], (0, 0))
    assert vault.keep("anna", "answer", "x") == ref
    assert vault.sweep(datetime(2000, 1, 1, tzinfo=UTC)) == 0
    assert len({ref, vault.keep("anna", "pack", "x"), vault.keep("bob", "answer", "x")}) == len(files(tmp_path)) == 3


def test_a_switched_off_vault_keeps_nothing(vault, tmp_path):
    """The reference is empty, no file appears; what was kept before can still be read."""
    ref = vault.keep("anna", "pack", "x")
    off = VaultFiles(tmp_path, enabled=False)
    assert off.keep("anna", "pack", "y") == "" and len(files(tmp_path)) == 1 and off.read(ref) == "x"


def test_retention_deletes_what_is_older(vault, tmp_path):
    """By the time it was last kept; reading it afterwards says that its retention may be over."""
    old = vault.keep("anna", "pack", "old")
    os.utime(files(tmp_path)[0], (1_000_000, 1_000_000))
    new = vault.keep("bob", "pack", "new")
    assert vault.sweep(datetime(2001, 1, 1, tzinfo=UTC)) == 1 and vault.read(new) == "new"
    with pytest.raises(DocumentError, match="missing") as caught:
        vault.read(old)
    assert caught.value.missing and "retention" in caught.value.hint


def test_damage_and_bad_references_are_named(vault, tmp_path):
    """Changed bytes, no zstd, a reference that is none, a user that must not become a path."""
    ref = vault.keep("anna", "pack", "x")
    other = vault.keep("anna", "pack", "other")
    path = next(p for p in files(tmp_path) if ref[-64:] in p.name)
    path.write_bytes(next(p for p in files(tmp_path) if other[-64:] in p.name).read_bytes())
    with pytest.raises(DocumentError, match="changed since it was kept"):
        vault.read(ref)
    path.write_bytes(b"plain")
    with pytest.raises(DocumentError, match="not zstd"):
        vault.read(ref)
    for bad in ("", "anna/pack/ab", "anna/../" + "a" * 64):
        with pytest.raises(DocumentError, match="expected <user>/<kind>/<sha256>"):
            vault.read(bad)
    for ask in (lambda: vault.read("../pack/" + "a" * 64), lambda: vault.keep("../x", "pack", "x")):
        with pytest.raises((BadIdError, DocumentError)):
            ask()


def test_the_vault_is_swept_once_a_day(tmp_path):
    """What is older than its retention goes; a second sweep within 24 hours looks at nothing."""
    vault = VaultFiles(tmp_path)
    now = datetime(2026, 6, 1, tzinfo=UTC)
    old = (now - timedelta(days=91)).timestamp()
    for text, swept in (("first", 1), ("second", None)):
        vault.keep("ann", "pack", text)
        for path in tmp_path.glob("users/ann/vault/*/*.zst"):
            os.utime(path, (old, old))
        assert vault.sweep_daily(now, days=90) == swept
    assert vault.sweep_daily(now + timedelta(days=1), days=90) == 1


def test_what_is_spared_outlives_its_retention(tmp_path):
    """Only its kind of its text; once it is spared no more, it goes."""
    vault, old = VaultFiles(tmp_path), datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    spared, other = vault.keep("ann", "pack", "x"), vault.keep("ann", "answer", "x")
    for path in files(tmp_path):
        os.utime(path, (old, old))
    now = datetime(2026, 6, 1, tzinfo=UTC)
    assert vault.sweep_daily(now, days=90, spared=lambda: {spared, "no reference"}) == 1
    assert vault.read(spared) == "x"
    with pytest.raises(DocumentError, match="missing"):
        vault.read(other)
    assert vault.sweep_daily(now + timedelta(days=1), days=90) == 1
