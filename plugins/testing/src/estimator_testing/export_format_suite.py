"""The suite for export formats."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core.errors import ExportError
from estimator_core.export import ExportFormat, ExportRequest, Feature, SignatureSpec
from estimator_testing.leaks import leaving_nothing, loading
from estimator_testing.suite import Suite

Arrays = Mapping[str, Any]

_INPUTS = {"x": Feature((None, 3), "float32"), "ids": Feature((None,), "int32")}
_OUTPUTS = {"scores": Feature((None, 2), "float32"), "next": Feature((None,), "int32")}
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_FRESH = """
import importlib, json, sys
import numpy as np
module, name, directory = sys.argv[1:]
found = importlib.import_module(module)
for part in name.split("."):
    found = getattr(found, part)
x, ids = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(2, dtype=np.int32)
from pathlib import Path
out = found().load(Path(directory)).signatures["serving_default"](x=x, ids=ids)
print(json.dumps({key: np.asarray(value).tolist() for key, value in out.items()}))
"""


class ExportFormatSuite(Suite):
    """Proves that a loaded export computes the outputs of the model, in another process and place.

    The suite writes a small model with two signatures, `scores = x @ kernel + bias` and its tanh.

    Example:
        >>> class TestMyFormat(ExportFormatSuite):
        ...     def make(self):
        ...         return MyFormat()
    """

    #: The largest difference between the outputs of the model and those of the export.
    tolerance: float = 1e-5

    def make(self) -> ExportFormat:
        """Returns the format. It is called several times."""
        raise NotImplementedError(f"{type(self).__name__} must define make(self)")

    def request(self, tmp_path: Path, shift: float = 0.0) -> ExportRequest:
        """Returns the request that is written. `shift` is added to the kernel."""
        asset = tmp_path / "words.txt"
        asset.write_text("one\ntwo\n")
        kernel = np.arange(6, dtype=np.float32).reshape(3, 2) / 10 + np.float32(shift)
        return ExportRequest(
            signatures={
                name: SignatureSpec(
                    name=name, method="predict", inputs=_INPUTS, outputs=_OUTPUTS, function=_FUNCTIONS[name]
                )
                for name in _FUNCTIONS
            },
            variables={"dense/kernel": kernel, "dense/bias": np.array([0.5, -0.5], np.float32)},
            assets={"vocabulary/words.txt": asset},
            global_step=7,
            provenance={"plugins": [{"distribution": "acme", "version": "1.0"}]},
        )

    def test_is_an_export_format(self) -> None:
        """It has the methods of ExportFormat and a valid component name."""
        written = self.make()
        assert isinstance(written, ExportFormat), f"{written!r} lacks a method of ExportFormat"
        assert re.fullmatch(r"[a-z][a-z0-9_]*", written.name), f"name {written.name!r}: lower-case words and _"

    def test_recognizes_its_own(self, tmp_path: Path) -> None:
        """It recognises its own exports and nothing else: no empty, missing or foreign directory."""
        directory = self._written(tmp_path)
        assert self.make().recognizes(directory) is True
        foreign = tmp_path / "foreign"
        foreign.mkdir()
        for other in (foreign, tmp_path / "missing"):
            assert self.make().recognizes(other) is False, f"it recognises {other.name}"
        (foreign / "readme.txt").write_text("nothing to see")
        assert self.make().recognizes(foreign) is False, "it recognises any directory with a file"

    def test_keeps_the_signatures(self, tmp_path: Path) -> None:
        """Names, inputs and outputs of the signatures are restored."""
        loaded = self.make().load(self._written(tmp_path))
        assert set(loaded.signatures) == set(_FUNCTIONS)
        for signature in loaded.signatures.values():
            assert {name: _form(feature) for name, feature in signature.inputs.items()} == _forms(_INPUTS)
            assert {name: _form(feature) for name, feature in signature.outputs.items()} == _forms(_OUTPUTS)

    def test_has_raw_signatures(self, tmp_path: Path) -> None:
        """Clients call raw signatures. Without host transforms they return the same as the signatures."""
        loaded = self.make().load(self._written(tmp_path))
        assert set(getattr(loaded, "raw_signatures", ())) == set(_FUNCTIONS), "raw_signatures are missing"
        for name, signature in loaded.raw_signatures.items():
            self._compare(signature(**_arrays(2)), loaded.signatures[name](**_arrays(2)))

    @pytest.mark.parametrize("batch", [1, 2, 5])
    def test_gives_the_same_outputs(self, tmp_path: Path, batch: int) -> None:
        """Every signature returns the outputs of the model, for any batch size."""
        request = self.request(tmp_path)
        loaded = self.make().load(self._written(tmp_path))
        for name, signature in loaded.signatures.items():
            self._compare(
                signature(**_arrays(batch)), request.signatures[name].function(request.variables, _arrays(batch))
            )

    def test_writes_the_variables_of_each_request(self, tmp_path: Path) -> None:
        """The same model with other values returns other outputs: nothing remains from an earlier export."""
        written = self.make()
        for number, shift in enumerate((0.0, 1.0)):
            request = self.request(tmp_path, shift)
            directory = tmp_path / f"export_{number}"
            directory.mkdir()
            written.write(request, directory)
            expected = request.signatures["serving_default"].function(request.variables, _arrays(2))
            self._compare(written.load(directory).signatures["serving_default"](**_arrays(2)), expected)

    def test_changes_nothing_it_is_given(self, tmp_path: Path) -> None:
        """The variables of the request are unchanged, because the estimator continues with them."""
        request = self.request(tmp_path)
        before = {name: value.copy() for name, value in request.variables.items()}
        directory = tmp_path / "export"
        directory.mkdir()
        self.make().write(request, directory)
        for name, value in before.items():
            np.testing.assert_array_equal(request.variables[name], value, name)

    def test_keeps_assets_and_manifest(self, tmp_path: Path) -> None:
        """Assets are in the export under their names, and the manifest has the step and the provenance."""
        directory = self._written(tmp_path)
        (tmp_path / "words.txt").unlink()
        found = [path for path in directory.rglob("words.txt") if path.parent.name == "vocabulary"]
        assert found, "the asset vocabulary/words.txt is not in the export"
        assert found[0].read_text() == "one\ntwo\n"
        manifest = json.dumps(self.make().load(directory).manifest, default=str)
        assert '"acme"' in manifest, "the manifest lacks the provenance"
        assert re.search(r"\b7\b", manifest), "the manifest lacks the global step"

    def test_loads_in_another_process_and_place(self, tmp_path: Path) -> None:
        """An export that was moved returns the same outputs in a process that does not know the model."""
        request = self.request(tmp_path)
        moved = tmp_path / "elsewhere" / "export"
        moved.parent.mkdir()
        shutil.move(self._written(tmp_path), moved)
        cls = type(self.make())
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", _FRESH, cls.__module__, cls.__qualname__, str(moved)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        expected = request.signatures["serving_default"].function(request.variables, _arrays(2))
        self._compare({name: np.asarray(value) for name, value in json.loads(done.stdout).items()}, expected)

    def test_holds_no_pickle(self, tmp_path: Path) -> None:
        """No file is a pickle, because loading an export must not run code that it contains."""
        for path in self._files(self._written(tmp_path)):
            content = path.read_bytes()
            assert not content.startswith(_PICKLES), f"{path.name} is a pickle"
            assert b".pkl" not in content[-4096:], f"{path.name} holds a pickle"

    def test_damage_is_noticed(self, tmp_path: Path) -> None:
        """With any file cut in half, it raises ExportError or returns the right outputs, never wrong ones."""
        request = self.request(tmp_path)
        expected = request.signatures["serving_default"].function(request.variables, _arrays(2))
        sound = self._written(tmp_path)
        for path in self._files(sound):
            damaged = tmp_path / "damaged"
            shutil.copytree(sound, damaged)
            copy = damaged / path.relative_to(sound)
            copy.write_bytes(copy.read_bytes()[: copy.stat().st_size // 2])
            try:
                outputs = self.make().load(damaged).signatures["serving_default"](**_arrays(2))
            except ExportError:
                pass
            else:
                self._compare(outputs, expected)
            shutil.rmtree(damaged)

    def test_wrong_inputs_are_refused(self, tmp_path: Path) -> None:
        """A missing or unknown input, or one of the wrong shape, is a ValueError or TypeError that names it."""
        signature = self.make().load(self._written(tmp_path)).signatures["serving_default"]
        good = _arrays(2)
        wrong = {
            "ids": {"x": good["x"]},
            "extra": {**good, "extra": 1.0},
            "x": {**good, "x": np.zeros((2, 4), np.float32)},
        }
        for name, arrays in wrong.items():
            with pytest.raises((ValueError, TypeError), match=name):
                signature(**arrays)

    def test_leaves_nothing_behind(self, tmp_path: Path) -> None:
        """After an export is written, loaded and called, no thread runs, no file is open, and the state of the process
        is as before.
        """

        def journey(name: str) -> None:
            (tmp_path / name).mkdir()
            loaded = self.make().load(self._written(tmp_path / name))
            loaded.signatures["serving_default"](**_arrays(2))

        with loading():
            journey("first")
        with leaving_nothing("after an export, the format"):
            journey("second")

    def _written(self, tmp_path: Path) -> Path:
        directory = tmp_path / "export"
        directory.mkdir()
        self.make().write(self.request(tmp_path), directory)
        return directory

    def _files(self, directory: Path) -> list[Path]:
        files = [path for path in directory.rglob("*") if path.is_file()]
        assert files, "it wrote no file"
        return files

    def _compare(self, actual: Arrays, expected: Arrays) -> None:
        assert set(actual) == set(expected), f"outputs {sorted(actual)}, expected {sorted(expected)}"
        for name, value in expected.items():
            assert np.asarray(actual[name]).dtype.kind == np.asarray(value).dtype.kind, f"{name!r} has another dtype"
            np.testing.assert_allclose(actual[name], value, rtol=self.tolerance, atol=self.tolerance, err_msg=name)


def _arrays(batch: int) -> dict[str, Any]:
    x = np.arange(3 * batch, dtype=np.float32).reshape(batch, 3)
    return {"x": x, "ids": np.arange(batch, dtype=np.int32)}


def _scores(variables: Arrays, inputs: Arrays) -> dict[str, Any]:
    scores = jnp.asarray(inputs["x"]) @ variables["dense/kernel"] + variables["dense/bias"]
    return {"scores": scores, "next": jnp.asarray(inputs["ids"]) + 1}


def _squashed(variables: Arrays, inputs: Arrays) -> dict[str, Any]:
    outputs = _scores(variables, inputs)
    return {**outputs, "scores": jnp.tanh(outputs["scores"])}


_FUNCTIONS = {"serving_default": _scores, "squashed": _squashed}


def _form(feature: Any) -> tuple[tuple[int | None, ...], str]:
    return tuple(feature.shape), str(feature.dtype)


def _forms(features: Mapping[str, Feature]) -> dict[str, tuple[tuple[int | None, ...], str]]:
    return {name: _form(feature) for name, feature in features.items()}
