"""Damaged, edited and hostile exports cause a clear error.

They cause no wrong answer, run no code, and read no file outside.
"""

import json
import os
import pickle
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import estimator_core as ec
from estimator_core.errors import ExportError
from estimator_exporters.bundle.card import CARD
from estimator_exporters.bundle.manifest import MANIFEST, checksum, seal
from plugins.exporters.tests.small_model import rows


@pytest.fixture
def copied(export, tmp_path):
    return Path(shutil.copytree(export, tmp_path / "copy"))


def files(directory):
    return sorted(path for path in Path(directory).rglob("*") if path.is_file())


def edit(directory, change, *, sealed):
    content = json.loads((directory / MANIFEST).read_text())
    change(content)
    if sealed:
        content["seal"] = seal(content)
    (directory / MANIFEST).write_text(json.dumps(content))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), file=st.integers(0, 100), bit=st.integers(0, 7))
def test_one_flipped_bit_anywhere_is_noticed(export, tmp_path, place, file, bit):
    directory = tmp_path / "flipped"
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(export, directory)
    path = files(directory)[file % len(files(directory))]
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1 << bit
    path.write_bytes(content)
    try:
        found = ec.export.load(directory).signatures["serving_default"](**rows(2)[0])
    except ExportError:
        return
    assert path.name == MANIFEST  # its white space may change
    expected = ec.export.load(export).signatures["serving_default"](**rows(2)[0])
    np.testing.assert_array_equal(found["logits"], expected["logits"])


@pytest.mark.parametrize("index", range(4))
@pytest.mark.parametrize("damage", ["missing", "empty", "half", "longer"])
def test_each_file_missing_or_of_another_length(copied, index, damage):
    path = files(copied)[index]
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes({"empty": b"", "half": content[: len(content) // 2], "longer": content + b"x"}[damage])
    with pytest.raises(ExportError, match=r"Export again|contains no export"):
        ec.export.load(copied)


def test_there_are_four_files(export):
    assert len(files(export)) == 4, "test_each_file_missing_or_of_another_length leaves files out"


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.update(global_step=content["global_step"] + 1),
        lambda content: content["signatures"]["serving_default"]["outputs"].pop("logits"),
        lambda content: content["provenance"].update(checkpoint="another"),
        lambda content: content.pop("seal"),
    ],
)
def test_an_edited_manifest_is_noticed(copied, change):
    edit(copied, change, sealed=False)
    with pytest.raises(ExportError, match="seal"):
        ec.export.load(copied)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.update(format_version=99), "Install a newer estimator-exporters"),
        (lambda content: content.pop("signatures"), "lacks keys that a manifest must have"),
        (lambda content: content["files"].update({"../outside": "0"}), "outside the export"),
        (lambda content: content["files"].update({"/etc/hostname": "0"}), "outside the export"),
        (lambda content: content.update(variables="/etc/hostname"), "not among its files"),
        (
            lambda content: content["signatures"]["serving_default"]["program"][0].update(path="../p"),
            "not among its files",
        ),
        (lambda content: content["signatures"]["serving_default"].pop("inputs"), "cannot be read"),
        (
            lambda content: content["signatures"]["serving_default"]["inputs"]["x"].update(dtype="nonsense"),
            "cannot be read",
        ),
        (lambda content: content.update(signatures={"serving_default": 3}), "cannot be read"),
    ],
)
def test_a_forged_manifest_reads_no_other_file_and_fails_clearly(copied, change, message):
    edit(copied, change, sealed=True)
    with pytest.raises(ExportError, match=message):
        ec.export.load(copied)


def test_a_link_out_of_the_export_is_not_followed(copied, tmp_path):
    (tmp_path / "secret").write_text("secret")
    os.symlink(tmp_path / "secret", copied / "linked")
    edit(copied, lambda content: content["files"].update(linked=checksum(tmp_path / "secret")), sealed=True)
    with pytest.raises(ExportError, match="outside the export"):
        ec.export.load(copied)


class Planted:
    """Writes a marker when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


@pytest.mark.parametrize("index", range(2))
def test_a_pickle_in_place_of_a_file_is_not_unpickled(copied, tmp_path, index):
    mark = tmp_path / "ran"
    path = [path for path in files(copied) if path.name not in (MANIFEST, CARD)][index]
    path.write_bytes(pickle.dumps(Planted(mark)))
    name = path.relative_to(copied).as_posix()
    edit(copied, lambda content: content["files"].update({name: checksum(path)}), sealed=True)
    with pytest.raises(ExportError):
        ec.export.load(copied)
    assert not mark.exists()


def test_a_model_card_is_not_read(copied, tmp_path):
    mark = tmp_path / "ran"
    (copied / CARD).write_bytes(pickle.dumps(Planted(mark)))
    edit(copied, lambda content: content["files"].update({CARD: checksum(copied / CARD)}), sealed=True)
    assert ec.export.load(copied).signatures["serving_default"](**rows(1)[0])["logits"].shape == (1, 2)
    assert not mark.exists()


def test_python_beside_the_export_is_not_imported(copied, tmp_path, monkeypatch):
    mark = tmp_path / "ran"
    for name in ("sitecustomize.py", "manifest.py", "jax.py", "__init__.py"):
        (copied / name).write_text(f"open({str(mark)!r}, 'w')")
    monkeypatch.chdir(copied)
    assert ec.export.load(copied).signatures["serving_default"](**rows(1)[0])["logits"].shape == (1, 2)
    assert not mark.exists()


def test_a_program_that_calls_back_into_the_process_is_refused(copied):
    """A callback is an address in the process that wrote it. In another process the address could be anything."""

    def called(variables, inputs):
        x = jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((2, 3), "float32"), inputs["x"])
        return {"logits": x, "class_ids": x}

    module = jax.jit(called).lower({}, {"x": jax.ShapeDtypeStruct((2, 3), "float32")}).as_text()
    assert "custom_call" in module
    from estimator_exporters.stablehlo.programs import _refuse_callbacks

    with pytest.raises(ExportError, match="calls back into Python"):
        _refuse_callbacks(module, "the program")


def test_a_host_transform_of_another_package_is_named(copied):
    folder = copied / "transforms" / "input"
    folder.mkdir(parents=True)
    entry = {"name": "acme_words", "version": 1, "config": {}, "files": {}}
    (folder / "transforms.json").write_text(json.dumps({"transforms": [entry]}))
    name = "transforms/input/transforms.json"
    edit(copied, lambda content: content["files"].update({name: checksum(copied / name)}), sealed=True)
    loaded = ec.export.load(copied)
    assert loaded.signatures["serving_default"](**rows(1)[0])["logits"].shape == (1, 2)
    with pytest.raises(ExportError, match=r"(?s)acme_words.*estimator-core"):
        _ = loaded.raw_signatures
