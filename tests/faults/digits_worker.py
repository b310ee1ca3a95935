"""Trains the digits example for a few steps: `python digits_worker.py EXAMPLE MODEL_DIR STEPS`."""

import importlib.util
import sys

import estimator_core as ec


def main(example: str, model_dir: str, steps: str) -> None:
    """Runs the example's train_and_evaluate."""
    spec = importlib.util.spec_from_file_location("digits_convnet", example)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    hparams = ec.HParams(**{**module.HPARAMS.values(), "train_steps": int(steps), "min_eval_frequency": 20})
    ec.learn_runner.run(
        module.experiment_fn, run_config=ec.RunConfig(model_dir=model_dir, tf_random_seed=1), hparams=hparams
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
