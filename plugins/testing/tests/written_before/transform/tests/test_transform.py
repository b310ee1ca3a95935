"""The transform keeps its contract, and changes what a model sees."""

import numpy as np

import estimator_core as ec
from estimator_core.inputs.transform_files import load_transforms, save_transforms
from estimator_core.inputs.transforms import apply_transforms
from estimator_core.testing import tiny_estimator, tiny_input_fn
from estimator_core.testing.host_transform_suite import HostTransformSuite


def make(mean, deviation):
    return ec.Plugins().get("transform", "acme_transform")("x", mean=mean, deviation=deviation)


class TestAcmeTransformScale(HostTransformSuite):
    def make(self):
        return make(mean=2.0, deviation=0.5)

    def batch(self):
        return {"x": np.arange(8, dtype=np.int32).reshape(4, 2), "other": np.arange(4)}


def test_takes_part_in_a_run(tmp_path):
    slopes = []
    for deviation in (1.0, 2.0):
        estimator = tiny_estimator(tmp_path / str(deviation), host_transforms=[make(0.0, deviation)])
        slopes.append(float(estimator.train(tiny_input_fn(), steps=600).get_variable_value("slope")))
    # A feature half as large needs twice the slope.
    np.testing.assert_allclose(slopes[1], slopes[0] * 2, rtol=0.1)


def test_comes_back_from_a_folder(tmp_path):
    save_transforms([make(2.0, 0.5)], tmp_path / "transforms")
    (loaded,) = load_transforms(tmp_path / "transforms", lambda name: ec.Plugins().get("transform", name))
    batch = {"x": np.arange(3, dtype=np.int32)}
    np.testing.assert_array_equal(apply_transforms([loaded], batch)["x"], [-4, -2, 0])
