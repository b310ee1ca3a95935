"""The program of a case, for `estimator migrate checkpoint` and `estimator run`."""

import estimator_core as ec
from plugins.migration.tests.canned import cases
from plugins.migration.tests.canned.this_side import input_fn, make

HPARAMS = ec.HParams(version="2.15.1", estimator="DNNLinearCombinedClassifier", optimizer="Adam")


def experiment_fn(run_config: ec.RunConfig, hparams: ec.HParams) -> ec.Experiment:
    return ec.Experiment(
        estimator=make(hparams.version, hparams.estimator, hparams.optimizer, run_config),
        train_input_fn=input_fn(hparams.estimator),
        eval_input_fn=input_fn(hparams.estimator),
        train_steps=2 * cases.STEPS,
    )
