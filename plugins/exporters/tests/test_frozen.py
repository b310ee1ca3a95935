"""Exports of earlier versions can be loaded. Exports of later versions are refused with advice."""

import json
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest
from flatbuffers import encode
from flatbuffers.number_types import UOffsetTFlags
from flatbuffers.table import Table

import estimator_core as ec
from estimator_core.errors import ExportError
from estimator_exporters.bundle.manifest import MANIFEST, checksum, seal
from plugins.exporters.tests.frozen.make import INPUTS

FROZEN = Path(__file__).with_name("frozen")


def test_an_export_of_format_version_1_gives_what_it_gave():
    """The export was written with jax 0.10.2, once, by `frozen/make.py`."""
    loaded = ec.export.load(FROZEN / "stablehlo_1")
    assert loaded.manifest["format_version"] == 1
    expected = json.loads((FROZEN / "stablehlo_1.json").read_text())
    for name, value in loaded.signatures["serving_default"](**INPUTS).items():
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-5, err_msg=name)
    assert loaded.raw_signatures["serving_default"](**INPUTS)["classes"].tolist() == ["yes", "yes"]
    assert (FROZEN / "stablehlo_1" / "assets" / "words.txt").read_text() == "no\nyes\n"


@pytest.mark.parametrize("written", ["now", "frozen"])
def test_no_path_of_the_sources_is_in_a_program(export, written):
    folder = Path(export) if written == "now" else FROZEN / "stablehlo_1"
    contents = {path.name: path.read_bytes() for path in folder.glob("programs/*")}
    assert contents
    traces = (b".py", b"site-packages", str(Path(__file__).parents[3]).encode())
    assert {name: trace for name, content in contents.items() for trace in traces if trace in content} == {}


def of_a_newer_jax(directory, change):
    """A copy of the export whose program looks as if jax 99.0 had written it."""
    shutil.copytree(FROZEN / "stablehlo_1", directory)
    program = directory / "programs" / "0.jaxexport"
    content = bytearray(program.read_bytes())
    change(content)
    program.write_bytes(content)
    manifest = json.loads((directory / MANIFEST).read_text())
    manifest["files"]["programs/0.jaxexport"] = checksum(program)
    manifest["provenance"]["versions"]["jax"] = "99.0"
    manifest["seal"] = seal(manifest)
    (directory / MANIFEST).write_text(json.dumps(manifest))
    return directory


def unknown_operation(content):
    place = content.index(b"dot_general_v2")
    content[place : place + 14] = b"dot_general_v9"


def later_calling_convention(content):
    table = Table(content, encode.Get(UOffsetTFlags.packer_type, content, 0))
    place = table.Offset(32) + table.Pos  # as in jax's serialization.fbs
    assert int.from_bytes(content[place : place + 2], "little") == 10
    content[place : place + 2] = (99).to_bytes(2, "little")


@pytest.mark.parametrize("change", [unknown_operation, later_calling_convention])
def test_a_program_of_a_newer_jax_is_refused_with_both_versions(tmp_path, change):
    directory = of_a_newer_jax(tmp_path / "newer", change)
    with pytest.raises(ExportError, match=rf"written with jax 99\.0 and cannot be read by jax {jax.__version__}"):
        ec.export.load(directory)


def test_others_may_read_what_was_written(export):
    """The server may run as another user than the training."""
    files = [path for path in Path(export).rglob("*") if path.is_file()]
    fresh = Path(export).with_name("fresh")
    fresh.touch()
    assert {path.stat().st_mode for path in files} == {fresh.stat().st_mode}
