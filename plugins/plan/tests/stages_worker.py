"""A model whose layers are stages: `pipelined` compared with a plain scan, and runs of it on eight devices."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType

import estimator_core as ec
from estimator_plan import pipelined

LAYERS, WIDTH, WIDER = 4, 16, 32
MESHES = ({"stage": 4, "data": 2}, {"stage": 2, "data": 1, "fsdp": 2, "model": 2})
RULES = [
    ("layers/up", ec.FullySharded("fsdp", base=("stage", None, "model"))),
    ("layers/down", ec.FullySharded("fsdp", base=("stage", "model"))),
]
STAGED: dict[str, Any] = {"mesh": {"stage": 2, "data": 2, "model": 2}, "partition_rules": RULES}
ALONE: dict[str, Any] = {}
X = np.random.default_rng(0).normal(size=(20, WIDTH)).astype(np.float32)
Y = X.sum(axis=1)


def layer(carried: dict[str, jax.Array], own: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """A residual layer that skips the examples that the mask marks with 0."""
    x = carried["x"]
    added = jnp.tanh(x @ own["up"]) @ own["down"]
    return {"x": x + added * carried["mask"][:, None].astype(x.dtype), "mask": carried["mask"]}


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    shapes = {"up": (LAYERS, WIDTH, WIDER), "down": (LAYERS, WIDER, WIDTH)}
    normal = jax.nn.initializers.normal(0.1)
    weights = {name: ec.get_variable(f"layers/{name}", shape, normal) for name, shape in shapes.items()}
    carried = {"x": features["x"], "mask": features["x"][:, 0] > 0}
    y = pipelined(jax.checkpoint(layer), weights, carried, microbatches=4)["x"].sum(axis=-1)
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y})
    return ec.EstimatorSpec(
        mode,
        predictions={"y": y},
        loss=jnp.mean((y - labels) ** 2),
        train_op=optax.adam(1e-3),
        eval_metric_ops={"error": ec.metrics.mean(jnp.abs(y - labels))},
    )


def differences(dtype: Any) -> list[dict[str, float]]:
    """Returns the largest differences for each mesh from a plain scan, and those of gradients from exact ones."""
    keys = jax.random.split(jax.random.key(0), 3)
    weights = {
        "up": (jax.random.normal(keys[0], (LAYERS, WIDTH, WIDER)) / 4).astype(dtype),
        "down": (jax.random.normal(keys[1], (LAYERS, WIDER, WIDTH)) / 6).astype(dtype),
    }
    carried = {"x": (jax.random.normal(keys[2], (16, WIDTH)) / 2).astype(dtype), "mask": jnp.arange(16) % 5 != 0}

    def loss(weights: Any, x: Any) -> Any:
        y = pipelined(jax.checkpoint(layer), weights, {"x": x, "mask": carried["mask"]}, microbatches=4)["x"]
        return jnp.mean(y.astype(jnp.float32) ** 2), y

    def computed(weights: Any, x: Any) -> Any:
        function = jax.jit(jax.value_and_grad(loss, argnums=(0, 1), has_aux=True))
        (_, y), gradients = function(weights, x)
        return jax.tree.map(lambda array: np.asarray(array, np.float64), (y, gradients))

    def largest(one: Any, other: Any) -> float:
        return max(jax.tree.leaves(jax.tree.map(lambda a, b: float(np.max(np.abs(a - b))), one, other)))

    y, gradients = computed(weights, carried["x"])
    _, exact = computed(*jax.tree.map(lambda array: array.astype(jnp.float32), (weights, carried["x"])))
    found = []
    for sizes in MESHES:
        mesh = jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
        with jax.set_mesh(mesh):
            own_y, own = computed(weights, carried["x"])
        found.append({"y": largest(own_y, y), "gradients": largest(own, gradients), "exact": largest(own, exact)})
    return [{"y": 0.0, "gradients": 0.0, "exact": largest(gradients, exact)}, *found]


def estimator(folder: str | Path, config: dict[str, Any]) -> ec.Estimator:
    return ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(folder), tf_random_seed=1, **config))


def train_input() -> Any:
    return [({"x": X[start : start + 8]}, Y[start : start + 8]) for start in (0, 8, 4, 12)]


def eval_input() -> Any:
    """Returns an input whose last batch has four examples, which the micro-batches do not divide on two devices."""
    return [({"x": X[start : start + 8]}, Y[start : start + 8]) for start in (0, 8, 16)]


def values(made: ec.Estimator) -> dict[str, np.ndarray]:
    return {name: np.asarray(made.get_variable_value(name)) for name in ("layers/up", "layers/down")}


def told(made: ec.Estimator) -> dict[str, Any]:
    metrics = made.evaluate(eval_input)
    predictions = [float(each["y"]) for each in made.predict(lambda: [{"x": X[:8]}, {"x": X[8:16]}, {"x": X[16:]}])]
    return {
        "metrics": {name: float(metrics[name]) for name in ("loss", "error")},
        "predictions": predictions,
        "values": {name: value.tolist() for name, value in values(made).items()},
    }


def runs(folder: str) -> dict[str, Any]:
    """Returns the results of runs after 4 and 8 steps, on one device and in stages, each continued on the other."""
    results: dict[str, Any] = {}
    for name, first, second in (("alone", ALONE, ALONE), ("staged", STAGED, ALONE), ("back", ALONE, STAGED)):
        made = estimator(Path(folder, name), first).train(train_input, steps=4)
        results[f"{name} 4"] = told(made)
        results[f"{name} 8"] = told(estimator(Path(folder, name), second).train(train_input, steps=4))
    return results


def export(folder: str) -> list[list[float]]:
    """Returns the outputs of an export of a run in stages, and the predictions of the run."""
    made = estimator(Path(folder, "exported"), STAGED).train(train_input, steps=4)
    receiver = functools.partial(ec.export.ServingInputReceiver, {"x": ec.export.Feature((None, WIDTH))})
    path = made.export_saved_model(str(Path(folder, "exports")), receiver, format="stablehlo")
    answered = ec.export.load(path).signatures["serving_default"](x=X)["y"]
    return [np.asarray(answered).tolist(), told(made)["predictions"]]


if __name__ == "__main__":
    import sys

    what, folder = sys.argv[1:]
    if what == "numbers":
        print(json.dumps([differences(jnp.float32), differences(jnp.bfloat16)]))
    else:
        print(json.dumps(runs(folder) if what == "runs" else export(folder)))
