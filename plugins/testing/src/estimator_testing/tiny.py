"""A model of two variables and its input, which is enough to test everything around a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optax

from estimator_core.config import RunConfig
from estimator_core.estimator import Estimator
from estimator_core.export import (
    Feature,
    PredictOutput,
    ServingInputReceiver,
    build_raw_serving_input_receiver_fn,
)
from estimator_core.inputs import numpy_input_fn
from estimator_core.metrics import mean
from estimator_core.model import get_variable
from estimator_core.modes import ModeKeys
from estimator_core.plugins import Plugins
from estimator_core.specs import EstimatorSpec

SLOPE, OFFSET = 3.0, 1.0


def tiny_estimator(
    model_dir: str | Path,
    *,
    plugins: Plugins | None = None,
    host_transforms: Sequence[Any] = (),
    params: Any = None,
    **config: Any,
) -> Estimator:
    """Returns an Estimator of `y = slope * x + offset`, trained by plain gradient descent.

    Args:
        model_dir: the directory that it writes to.
        plugins: as in `Estimator`.
        host_transforms: as in `Estimator`.
        params: as in `Estimator`.
        config: the further arguments of `RunConfig`. Default seed: 1.

    Example:
        >>> import tempfile
        >>> estimator = tiny_estimator(tempfile.mkdtemp()).train(tiny_input_fn(), steps=100)
        >>> round(float(estimator.get_variable_value("slope")))
        3
    """
    config = {"model_dir": str(model_dir), "tf_random_seed": 1, **config}
    return Estimator(
        tiny_model_fn,
        config=RunConfig(**config),
        params=params,
        plugins=plugins,
        host_transforms=tuple(host_transforms),
    )


def tiny_model_fn(features: Mapping[str, Any], labels: Any, mode: str) -> EstimatorSpec:
    """Returns the spec of the model: `features["x"]` is float [batch, 1], labels are float [batch]."""
    y = features["x"][:, 0] * get_variable("slope", ()) + get_variable("offset", ())
    predictions = {"y": y}
    if mode == ModeKeys.PREDICT:
        return EstimatorSpec(
            mode, predictions=predictions, export_outputs={"serving_default": PredictOutput(predictions)}
        )
    errors = (y - labels) ** 2
    return EstimatorSpec(
        mode, loss=errors.mean(), train_op=optax.sgd(0.5), eval_metric_ops={"average_loss": mean(errors)}
    )


def tiny_input_fn(*, epochs: int | None = None, batch_size: int = 8) -> Callable[..., Any]:
    """Returns an input_fn of forty examples with slope 3 and offset 1, in a fixed random order. Endless by default."""
    x = np.linspace(0, 1, 40, dtype=np.float32)[:, None]
    labels = SLOPE * x[:, 0] + OFFSET
    return numpy_input_fn({"x": x}, labels, batch_size=batch_size, num_epochs=epochs, shuffle=epochs is None, seed=1)


def tiny_receiver_fn() -> ServingInputReceiver:
    """Returns the receiver of the model's input from a client: `x`, float32 [batch, 1]."""
    return build_raw_serving_input_receiver_fn({"x": Feature((None, 1), "float32")})()
