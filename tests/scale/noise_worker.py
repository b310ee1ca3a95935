"""A run whose optimizer keeps a random key: `noise_worker.py SETTINGS_JSON`. It prints the final weight.

Settings: model_dir, and the parts of the run. Each part has the devices of its mesh (0: no mesh, -1: all) and its last
step.
"""

import json
import sys
from typing import Any

import numpy as np
import optax

import estimator_core as ec


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    y = features["x"] * ec.get_variable("w", ())
    noisy = optax.chain(optax.add_noise(0.1, 0.5, 0), optax.sgd(0.1))
    return ec.EstimatorSpec(mode, loss=((y - labels) ** 2).mean(), train_op=noisy)


def main(settings: dict[str, Any]) -> None:
    ones = np.ones(4, np.float32)
    estimator = None
    for devices, last in settings["parts"]:
        config = ec.RunConfig(
            model_dir=settings["model_dir"], tf_random_seed=3, mesh={"data": devices} if devices else None
        )
        estimator = ec.Estimator(model_fn, config=config)
        estimator.train(ec.inputs.from_iterable([({"x": ones}, ones)] * 12, whole=True), max_steps=last)
    assert estimator is not None
    print(json.dumps({"weight": float(estimator.get_variable_value("w"))}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
