"""Tests of the `saved_model` format, in an environment with TensorFlow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from estimator_core.errors import ArgumentError, ExportError
from estimator_core.export import ExportRequest, Feature, SignatureSpec
from estimator_core.testing import ExportFormatSuite
from estimator_exporters.saved_model import SavedModelFormat


class TestSavedModel(ExportFormatSuite):
    def make(self):
        return SavedModelFormat()


def request(function, *, name="x", dtype="float32", **more):
    signature = SignatureSpec(
        name="serving_default",
        method="predict",
        inputs={name: Feature((None, 4), dtype)},
        outputs={"y": Feature((None, 4))},
        function=function,
    )
    return ExportRequest(signatures={"serving_default": signature}, variables={}, **more)


def written(request, tmp_path):
    SavedModelFormat().write(request, tmp_path / "export")
    return SavedModelFormat().load(tmp_path / "export")


X = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)


def test_integers_that_the_program_would_wrap_are_refused(tmp_path):
    loaded = written(request(lambda variables, inputs: {"y": inputs["x"] / 2}, dtype="int64"), tmp_path)
    signature = loaded.signatures["serving_default"]
    assert signature(x=np.full((1, 4), 6))["y"].tolist() == [[3.0] * 4]
    with pytest.raises(ArgumentError, match=f"'x' holds {2**40 + 7}, outside the range of int32"):
        signature(x=np.full((1, 4), 2**40 + 7))


def test_assets_lie_where_tensorflow_serving_looks_for_warmup_requests(tmp_path):
    warmup = tmp_path / "requests"
    warmup.write_text("records")
    assets = {"tf_serving_warmup_requests": warmup}
    written(request(lambda variables, inputs: {"y": inputs["x"] / 2}, assets=assets), tmp_path)
    for folder in ("assets.extra", "assets"):
        assert (tmp_path / "export" / folder / "tf_serving_warmup_requests").read_text() == "records"


def repeated(x):
    return jax.lax.while_loop(lambda found: found.sum() < 100, lambda found: found + 1, x)


OPERATIONS = {
    "top_k": lambda x: jax.lax.top_k(x, 4)[0],
    "sort": lambda x: jnp.sort(x, axis=-1),
    "argsort": lambda x: jnp.argsort(x, axis=-1).astype(jnp.float32),
    "while": repeated,
    "cond": lambda x: jax.lax.cond(x.sum() > 0, lambda: x, lambda: -x),
    "gather along the batch": lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1),
    "scatter along the batch": jax.vmap(lambda row: row.at[jnp.argsort(row)[:2]].add(1.0)),
    "tan": jnp.tan,
    "erf": jax.scipy.special.erf,
    "asinh": jnp.arcsinh,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "dropout": lambda x: x * jax.random.bernoulli(jax.random.key(0), 0.5, x.shape),
    "look-up": lambda x: jnp.take(jnp.arange(32.0).reshape(8, 4), (x[:, 0] * 4).astype(jnp.int32) % 8, axis=0),
    "bfloat16": lambda x: (x.astype(jnp.bfloat16) * 2).astype(jnp.float32),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_written_for_the_oldest_reader(tmp_path, name):
    made = request(lambda variables, inputs: {"y": OPERATIONS[name](inputs["x"])})
    found = written(made, tmp_path).signatures["serving_default"](x=X)["y"]
    np.testing.assert_allclose(found, OPERATIONS[name](jnp.asarray(X)), rtol=1e-5, atol=1e-6)


def test_names_of_users_stay_in_the_signatures(tmp_path):
    made = request(lambda variables, inputs: {"y": inputs["user age.1"]}, name="user age.1")
    assert written(made, tmp_path).signatures["serving_default"](**{"user age.1": X})["y"].tolist() == X.tolist()
    module = tf.saved_model.load(str(tmp_path / "export"))
    assert module.signatures["serving_default"](**{"user age.1": tf.constant(X)})["y"].numpy().tolist() == X.tolist()


def test_the_manifest_names_the_readers(tmp_path):
    manifest = written(request(lambda variables, inputs: {"y": inputs["x"]}), tmp_path).manifest
    assert manifest["readers"] == {"tensorflow": {"oldest": "2.15", "newest": "2.21"}}


def printing(variables, inputs):
    jax.debug.print("{}", inputs["x"])
    return {"y": inputs["x"]}


def decomposed(variables, inputs):
    return {"y": jnp.linalg.cholesky(jnp.eye(2) + 0 * inputs["x"].reshape(-1, 2, 2)).reshape(-1, 4)}


def beyond(variables, inputs):
    return {"y": inputs["x"].astype("float8_e8m0fnu").astype("float32")}


class Silent:
    """A transform that does not describe its computation."""

    name, version, files = "silent", 1, {}

    def config(self):
        return {}

    def apply(self, batch):
        return batch


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"fixed_batch_sizes": (1, 2)}, "one program for all batch sizes"),
        ({"function": printing}, "'serving_default' calls back into Python"),
        ({"function": decomposed}, "'serving_default' calls lapack_spotrf_ffi, which is a part of jax"),
        ({"function": beyond}, r"does not read \(StableHLO 0.14.0\): \w+"),
        ({"input_transforms": (Silent(),)}, "host transform 'silent' does not say"),
        ({"output_transforms": (Silent(),)}, "host transform 'silent' does not say"),
    ],
)
def test_what_cannot_be_held_is_refused_before_anything_is_written(tmp_path, more, message):
    refused = request(**{"function": lambda variables, inputs: {"y": inputs["x"]}, **more})
    for refusing in (SavedModelFormat().check, lambda one: SavedModelFormat().write(one, tmp_path)):
        with pytest.raises(ExportError, match=message):
            refusing(refused)
    assert list(tmp_path.iterdir()) == []
