"""Tests of the `onnx` format, in an environment with jax2onnx and onnxruntime."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest
from jax import lax

from estimator_core.errors import ArgumentError, ExportError
from estimator_core.export import ExportRequest, Feature, SignatureSpec
from estimator_core.testing import ExportFormatSuite
from estimator_exporters.onnx import OnnxFormat, convert


class TestOnnx(ExportFormatSuite):
    def make(self):
        return OnnxFormat()


def request(function, shape, dtype="float32", out=(None,), **more):
    signature = SignatureSpec(
        name="serving_default",
        method="predict",
        inputs={"x": Feature(shape, dtype)},
        outputs={"y": Feature(out)},
        function=lambda variables, inputs: {"y": function(inputs["x"])},
    )
    return ExportRequest(signatures={"serving_default": signature}, variables={}, **more)


def pooled(operation, start, padding):
    return lambda x: lax.reduce_window(x, start, operation, (1, 2, 3, 1), (1, 2, 1, 1), padding)


def test_shapes_that_depend_on_the_batch(tmp_path):
    OnnxFormat().write(request(lambda x: x[:, 0] + jnp.arange(x.shape[0], dtype=jnp.float32), (None, 2)), tmp_path)
    found = OnnxFormat().load(tmp_path).signatures["serving_default"](x=np.zeros((4, 2), np.float32))["y"]
    assert found.tolist() == [0, 1, 2, 3]


def test_integers_that_the_graph_would_wrap_are_refused(tmp_path):
    OnnxFormat().write(request(lambda x: x[:, 0] / 2, (None, 2), "int64"), tmp_path)
    signature = OnnxFormat().load(tmp_path).signatures["serving_default"]
    assert signature(x=np.array([[6, 0]]))["y"].tolist() == [3]
    with pytest.raises(ArgumentError, match=f"'x' holds {2**40 + 7}, outside the range of int32"):
        signature(x=np.array([[2**40 + 7, 0]]))


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(("operation", "start"), [(lax.max, -jnp.inf), (lax.add, 0.0)])
def test_poolings_of_images(tmp_path, operation, start, padding):
    """onnxruntime pools over three dimensions, but the converter would need four."""
    function = pooled(operation, start, padding)
    out = jax.eval_shape(function, jax.ShapeDtypeStruct((1, 6, 7, 3), "float32")).shape
    OnnxFormat().write(request(function, (None, 6, 7, 3), out=(None, *out[1:])), tmp_path)
    x = np.random.default_rng(0).normal(size=(5, 6, 7, 3)).astype(np.float32)
    found = OnnxFormat().load(tmp_path).signatures["serving_default"](x=x)["y"]
    np.testing.assert_allclose(found, function(x), rtol=1e-5, atol=1e-5)


def test_the_branch_of_the_processor_is_taken(tmp_path):
    function = lambda x: lax.platform_dependent(x[:, 0], cpu=jnp.sin, tpu=jnp.cos, default=jnp.tan)  # noqa: E731
    OnnxFormat().write(request(function, (None, 2)), tmp_path)
    x = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    found = OnnxFormat().load(tmp_path).signatures["serving_default"](x=x)["y"]
    np.testing.assert_allclose(found, np.sin(x[:, 0]), rtol=1e-5, atol=1e-6)


def test_a_model_that_gives_what_it_takes(tmp_path):
    """Nothing of the model is converted. The file still has a version that onnxruntime 1.20 reads."""
    OnnxFormat().write(request(lambda x: x, (None, 2), out=(None, 2)), tmp_path)
    assert onnx.load(str(tmp_path / "graphs" / "0.onnx")).ir_version == 10
    found = OnnxFormat().load(tmp_path).signatures["serving_default"](x=np.ones((4, 2), np.float32))["y"]
    assert found.tolist() == [[1, 1]] * 4


def test_functions_of_jax_are_as_before():
    """The converter replaces `jnp.cumsum` for good by a function that takes no axis by place."""
    OnnxFormat().check(request(lambda x: x[:, 0], (None, 2)))
    assert jnp.cumsum(jnp.ones((2, 2)), 0).tolist() == [[1, 1], [2, 2]]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: request(lambda x: x.sum(axis=1).astype("float32"), (None, 2), "bfloat16"), "'x' is bfloat16"),
        (lambda: request(lambda x: x[:, 0], (None, 2), fixed_batch_sizes=(1, 2)), "one program for all batch sizes"),
        (
            lambda: request(lambda x: jax.pure_callback(np.sin, x[:, 0], x[:, 0]), (None, 2)),
            "uses pure_callback, which jax2onnx does not convert",
        ),
        (
            lambda: request(lambda x: (x[:, 0].astype("bfloat16") * 2).astype("float32"), (None, 2)),
            "uses Mul of a dtype that onnxruntime does not run on a CPU",
        ),
        (
            lambda: request(lambda x: jax.random.uniform(jax.random.key(0), x[:, 0].shape), (None, 2)),
            r"cannot be converted to ONNX by jax2onnx \(NotImplementedError: random_bits",
        ),
    ],
)
def test_what_cannot_be_converted_is_said_before_anything_is_written(tmp_path, made, message):
    for refusing in (OnnxFormat().check, lambda one: OnnxFormat().write(one, tmp_path)):
        with pytest.raises(ExportError, match=message):
            refusing(made())
    assert list(tmp_path.iterdir()) == []


def test_what_only_newer_readers_run_is_refused_by_name(tmp_path):
    def counted(x):
        return jnp.searchsorted(jnp.array([-1.0, 0.0, 1.0]), x).astype(jnp.float32)

    with pytest.raises(ExportError, match="uses Sub of uint32, which onnxruntime"):
        OnnxFormat().check(request(counted, (None,)))


def test_another_thread_may_trace_during_a_conversion(monkeypatch):
    """The converter replaced functions of jax in the whole process while it traced the program again."""
    before, during = (jnp.cumsum, jax.nn.relu), []
    evaluate = convert.evaluated

    def evaluated(program, arrays):
        during.append((jnp.cumsum, jax.nn.relu))
        return evaluate(program, arrays)

    monkeypatch.setattr(convert, "evaluated", evaluated)
    OnnxFormat().check(request(lambda x: jax.nn.relu(x[:, 0]), (None, 2)))
    assert during == [before, before]


def test_another_version_of_the_converter_is_named(monkeypatch):
    """The error said that the model cannot be converted."""
    from jax2onnx.converter import conversion_api

    monkeypatch.delattr(conversion_api, "_force_jax_x64")
    with pytest.raises(ExportError, match=r"does not support jax2onnx [\d.]+: it has no _force_jax_x64\. Install"):
        OnnxFormat().check(request(lambda x: x + 1, (None,)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_program_of_64_bits(tmp_path, dtype):
    """The converter set `jax_enable_x64` to False in the whole process, and refused the program."""
    weight = np.full((), 0.1, dtype)
    signature = SignatureSpec(
        name="serving_default",
        method="predict",
        inputs={"x": Feature((None,), dtype), "i": Feature((None,), "int64")},
        outputs={"y": Feature((None,), dtype), "j": Feature((None,), "int64")},
        function=lambda weights, given: {"y": jnp.cumsum(given["x"]) * weights["w"] + 1, "j": given["i"] + 1},
    )
    x, i = np.array([2.0**20, 1e-9], dtype), np.array([2**40, -(2**40)])
    jax.config.update("jax_enable_x64", True)
    try:
        OnnxFormat().write(ExportRequest(signatures={"serving_default": signature}, variables={"w": weight}), tmp_path)
    finally:
        jax.config.update("jax_enable_x64", False)
    found = OnnxFormat().load(tmp_path).signatures["serving_default"](x=x, i=i)
    assert {name: one.dtype.name for name, one in found.items()} == {"y": dtype, "j": "int64"}
    np.testing.assert_allclose(found["y"], np.cumsum(x) * weight + 1, rtol=1e-6 if dtype == "float32" else 1e-15)
    assert found["j"].tolist() == [2**40 + 1, 1 - 2**40]


@pytest.mark.parametrize("class_names", [None, ("no", "yes")])
def test_the_recipe_of_the_page_finds_the_graph(tmp_path, class_names):
    page = (Path(__file__).parents[4] / "docs" / "export.md").read_text(encoding="utf-8")
    (recipe,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def raw_graph" in block)
    names = {}
    exec(recipe, names)
    signature = SignatureSpec(
        name="serving_default",
        method="predict",
        inputs={"x": Feature((None,))},
        outputs={"classes": Feature((None,), "int32")},
        function=lambda variables, inputs: {"classes": (inputs["x"] > 0).astype(jnp.int32)},
        class_names=class_names,
    )
    OnnxFormat().write(ExportRequest(signatures={"serving_default": signature}, variables={}), tmp_path)
    graph = onnxruntime.InferenceSession(str(names["raw_graph"](tmp_path)), providers=["CPUExecutionProvider"])
    (found,) = graph.run(None, {"x": np.array([-1, 2], np.float32)})
    assert found.tolist() == ([0, 1] if class_names is None else ["no", "yes"])
