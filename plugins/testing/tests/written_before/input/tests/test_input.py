"""The input keeps its contract, and feeds a training."""

import pandas as pd
import pytest

import estimator_core as ec
from estimator_core.inputs.frames import pandas_input_fn
from estimator_core.testing.input_suite import InputSuite
from estimator_core.testing.tiny import tiny_estimator


def write(path, slope):
    path.write_text("".join(f"{x / 20},{slope * x / 20}\n" for x in range(20)))
    return path


def make(path, **arguments):
    return ec.Plugins().get("input", "acme_input")(path, **{"batch_size": 6, "shuffle": True, "seed": 1, **arguments})


class Testacme_input_input_fn(InputSuite):
    @pytest.fixture(autouse=True)
    def file(self, tmp_path):
        self.path = write(tmp_path / "numbers.csv", slope=2)

    def make(self):
        return make(self.path)


def test_takes_part_in_a_run(tmp_path):
    slopes = []
    for slope in (1, 4):
        input_fn = make(write(tmp_path / f"{slope}.csv", slope), num_epochs=None)
        estimator = tiny_estimator(tmp_path / f"model_{slope}").train(input_fn, steps=60)
        slopes.append(float(estimator.get_variable_value("slope")))
    assert abs(slopes[0] - 1) < 0.5
    assert abs(slopes[1] - 4) < 0.5


class TestPandasBesideIt(InputSuite):
    def make(self):
        table = pd.DataFrame({"x": range(20), "y": range(20)}, dtype="float32")
        return pandas_input_fn(table[["x"]], table["y"], batch_size=6, shuffle=True, seed=1)
