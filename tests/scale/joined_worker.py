"""A program that connects its processes itself: `joined_worker.py ADDRESS COUNT INDEX MODEL_DIR`. It prints its
configs.

The environment does not announce the processes. The Estimator detects them through jax.
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax
import models

import estimator_core as ec


class Look(ec.Hook):
    """Keeps the config of the run."""

    config: Any = None

    def begin(self, run: ec.Run) -> None:
        self.config = run.config


def main(address: str, count: int, index: int, model_dir: str) -> None:
    jax.distributed.initialize(address, count, index)
    in_model: list[Any] = []

    def model_fn(features: Any, labels: Any, mode: str, params: Any, config: Any) -> ec.EstimatorSpec:
        in_model.append(config)
        return models.classifier(features, labels, mode, params)

    config = ec.RunConfig(model_dir=model_dir, tf_random_seed=1, save_checkpoints_steps=2)
    estimator = ec.Estimator(model_fn, config=config, params={"width": 8})
    before, look = estimator.config, Look()
    estimator.train(models.train_input(16), hooks=[look], max_steps=2)

    def told(config: ec.RunConfig) -> list[Any]:
        group = config.process_group
        return [None if group is None else [group.count, group.index], config.is_chief]

    print(
        json.dumps(
            {
                "before": told(before),
                "given": told(config),
                "now": told(estimator.config),
                "hook": told(look.config),
                "model_fn": told(in_model[-1]),
                "newest": Path(estimator.latest_checkpoint() or "").name,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
