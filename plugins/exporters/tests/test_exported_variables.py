"""The variables of an export are used as initial values, as tf.estimator uses those of a SavedModel."""

from pathlib import Path

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError, CheckpointNotFoundError, ExportError
from estimator_core.testing import InitialValuesSuite
from plugins.exporters.tests.small_model import input_fn, model_fn, receiver_fn, trained

NAMES = ["hidden/kernel", "output/kernel"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ec.Estimator:
    return trained(tmp_path_factory.mktemp("run"))


@pytest.fixture
def export(run: ec.Estimator, tmp_path: Path) -> Path:
    return Path(run.export_saved_model(str(tmp_path / "exports"), receiver_fn))


class TestExportedVariables(InitialValuesSuite):
    def make(self, folder):
        made = sorted((folder / "exports").glob("*"))
        run = None if made else trained(folder / "exported")
        path = made[0] if run is None else run.export_saved_model(str(folder / "exports"), receiver_fn)
        return ec.Plugins().get("initial_values", "export")(path)

    def variables(self):
        return {"hidden/kernel": np.zeros((3, 4), np.float32), "bias": np.ones(3, np.float32)}


def test_they_are_read_by_name(run, export):
    found = ec.load_variables(export)
    assert sorted(found) == NAMES
    for name, value in found.items():
        np.testing.assert_array_equal(value, run.get_variable_value(name))
    assert list(ec.load_variables(export, ["output/kernel"])) == ["output/kernel"]
    with pytest.raises(ArgumentError, match=r"has no variables \['bias'\]"):
        ec.load_variables(export, ["bias"])


def test_an_altered_export_is_named(export):
    weights = export / "variables.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    with pytest.raises(ExportError, match=r"variables\.safetensors is damaged"):
        ec.load_variables(export)


def test_it_is_no_checkpoint_to_continue_from(run, export, tmp_path):
    with pytest.raises(CheckpointNotFoundError, match="is an export, not a checkpoint"):
        run.evaluate(input_fn(), checkpoint_path=str(export))
    with pytest.raises(ec.errors.CheckpointError, match="has a checkpoint of an export and none of this framework"):
        ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(export))).train(input_fn(), steps=1)


@pytest.mark.plugins
def test_a_run_starts_from_them(run, export, tmp_path):
    warm = ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(tmp_path / "warm")), warm_start_from=str(export))
    warm.train(input_fn(), steps=1)
    first = ec.load_variables(tmp_path / "warm" / "checkpoints" / "0")
    for name in NAMES:
        np.testing.assert_array_equal(first[name], run.get_variable_value(name))


@pytest.mark.parametrize("below", ["file", "file/deeper"])
def test_a_file_in_the_place_of_the_directory_is_named(run, tmp_path, below):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match=r"Exports go into a directory, but .*/file is a file"):
        run.export_saved_model(str(tmp_path / below), receiver_fn)


@pytest.mark.parametrize("name", ["../outside", "a/b", "/here", ".."])
def test_the_name_of_an_exporter_is_no_path(name):
    class Named:
        def export(self, *args):
            raise AssertionError

    Named.name = name
    with pytest.raises(ArgumentError, match="names a directory, so it has no '/'"):
        ec.EvalSpec(input_fn(), exporters=Named())
