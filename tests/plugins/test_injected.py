"""Tests that `Estimator(plugins=...)` reaches every part of the Estimator, including the module adapters of
`ec.module`.
"""

import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentTypeError

ADAPTER = """
class Scale:
    __module__ = "scales"

    def __init__(self, value):
        self.value = value

class ScaleAdapter:
    name = "scale"
    library = "builtins"

    def handles(self, module):
        return isinstance(module, Scale)

    def bind(self, binding):
        import numpy as np

        value = np.float32(binding.module.value)
        return lambda x: x * binding.variable("value", (), "float32", value)

    def write_back(self, module, values):
        module.value = float(values["value"])
"""
PLUGIN = """
from estimator_core._plugins import Component

def estimator_components():
    return [Component(kind="adapter", name="scale", target="scales.library:ScaleAdapter", summary="Scales.")]
"""


def make(site, plugins, model_dir):
    site.add("scales", PLUGIN, files={"library.py": ADAPTER})
    from scales.library import Scale  # type: ignore[import-not-found]

    def model_fn(features, mode):
        y = ec.module(Scale(3.0), name="scale")(features["x"])
        return ec.EstimatorSpec(mode, predictions={"y": y}, loss=(y**2).mean(), train_op=optax.sgd(0.01))

    given = site.plugins() if plugins else None
    return Scale, ec.Estimator(model_fn, str(model_dir), plugins=given)


def batches():
    return iter([{"x": np.ones((4, 3), np.float32)}])


def test_ec_module_finds_the_adapters_of_the_injected_plugins(site, tmp_path):
    Scale, estimator = make(site, True, tmp_path / "model")
    estimator.train(batches, steps=1)
    trained = estimator.get_variable_value("scale/value")
    assert trained == pytest.approx(3.0 - 0.01 * 2 * 3.0)
    assert estimator.load_into(Scale(0.0), "scale").value == pytest.approx(float(trained))


def test_without_them_the_module_is_unknown(site, tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_PLUGINS_BLOCK", "scales")
    _, estimator = make(site, False, tmp_path / "model")
    with pytest.raises(ArgumentTypeError, match=r"ec\.module cannot adapt a module of type scales\.Scale"):
        estimator.train(batches, steps=1)
