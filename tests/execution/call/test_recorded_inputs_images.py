"""Calls with images: their tokens count, their bytes are stored beside the pack, and a recorded call can be made again."""

import json
from dataclasses import replace

import pytest

from pandora_dagster.contracts.images import ImagePart
from pandora_dagster.contracts.recipe_schema import CallCase
from pandora_dagster.errors import DocumentError, HaltError
from pandora_dagster.execution.call.recorded_inputs import replay_request
from pandora_dagster.stores.calls.vault_files import VaultFiles

KEY = b"sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
PNG = ImagePart("page.png", "image/png", 300, b"\x89PNG api_key=" + KEY)


def test_a_pack_has_the_images_and_names_their_bytes(rig):
    """The stored pack holds name, type, tokens and reference; the bytes are stored apart, once."""
    made = rig()
    result = made.call(images=(PNG,))
    (sent,) = made.runtime.packs
    (image,) = sent.images
    assert image == replace(PNG, reference="anna/image/0") and made.stores.images == {"anna/image/0": PNG.data}
    stored = json.loads(made.stores.read(result.record.pack_ref))
    assert stored["images"] == [{"name": "page.png", "media_type": "image/png", "tokens": 300, "reference": "anna/image/0"}]
    assert result.record.context_sizes["image"] == 300 and result.record.tokens.input > 300


def test_a_pack_without_images_is_stored_as_before(rig):
    made = rig()
    result = made.call()
    assert "images" not in json.loads(made.stores.read(result.record.pack_ref))
    assert "images" not in made.stores.read(result.record.request_ref) and "image" not in result.record.context_sizes


def test_images_over_the_budget_halt_the_call(rig):
    """Their tokens are part of the input: nothing is left out in silence."""
    with pytest.raises(HaltError, match=r"input: .* over"):
        rig().call(images=(replace(PNG, tokens=5_000),))


def test_a_recorded_call_is_made_again_with_its_images(rig):
    """The case holds the reference; the executor reads the bytes."""
    made = rig()
    case = CallCase.model_validate_json(made.stores.read(made.call(images=(PNG,)).record.request_ref))
    again = replay_request(case, "pipeline/plan", user="anna")
    assert again.images == (replace(PNG, data=b"", reference="anna/image/0"),)
    made.call(images=again.images)
    assert made.runtime.packs[1].images == made.runtime.packs[0].images and len(made.stores.images) == 1


def test_an_image_that_is_gone_halts_the_call(rig):
    made = rig()
    with pytest.raises(HaltError, match=r"image page\.png: anna/image/9: missing"):
        made.call(images=(replace(PNG, data=b"", reference="anna/image/9"),))
    assert made.stores.opened[0].type == "missing_document" and made.runtime.packs == []


def test_a_vault_that_fails_costs_the_copy(rig):
    made = rig(broken=True)
    made.call(images=(PNG,))
    assert made.runtime.packs[0].images == (PNG,)


def test_the_vault_stores_image_bytes_unchanged(tmp_path):
    """Content-addressed and without redaction; a second copy has the same reference, and a vault that is off stores nothing."""
    vault = VaultFiles(tmp_path)
    ref = vault.keep_image("anna", PNG.data)
    assert ref == vault.keep_image("anna", PNG.data) and ref.startswith("anna/image/") and vault.read_image(ref) == PNG.data
    assert KEY.decode() not in vault.read(vault.keep("anna", "pack", f"api_key={KEY.decode()}"))
    assert VaultFiles(tmp_path, enabled=False).keep_image("anna", PNG.data) == ""
    with pytest.raises(DocumentError, match="missing"):
        vault.read_image(ref[:-1] + ("0" if ref[-1] != "0" else "1"))
