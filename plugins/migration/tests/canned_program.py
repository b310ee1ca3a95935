"""The program of record_canned.py here."""

import numpy as np

import estimator_canned_tabular as tabular
import estimator_core as ec


def input_fn():
    rng = np.random.RandomState(0)
    features = {
        "a": rng.randn(64).astype(np.float32),
        "b": rng.randn(64).astype(np.float32),
        "c": rng.choice(["x", "y", "z"], 64),
    }
    labels = (features["a"] + features["b"] > 0).astype(np.int64)
    return ec.inputs.numpy_input_fn(features, labels, batch_size=16, num_epochs=None, shuffle=False)


def make(optimizer: str, config: ec.RunConfig) -> ec.Estimator:
    c = tabular.categorical_column_with_vocabulary_list("c", ["x", "y", "z"])
    a, b = tabular.numeric_column("a"), tabular.numeric_column("b")
    return tabular.DNNLinearCombinedClassifier(
        linear_feature_columns=[c, a],
        linear_optimizer=optimizer,
        dnn_feature_columns=[a, b, tabular.embedding_column(c, 2)],
        dnn_optimizer=optimizer,
        dnn_hidden_units=[4, 3],
        config=config,
    )


HPARAMS = ec.HParams(optimizer="Adagrad")


def experiment_fn(run_config: ec.RunConfig, hparams: ec.HParams) -> ec.Experiment:
    return ec.Experiment(
        estimator=make(hparams.optimizer, run_config),
        train_input_fn=input_fn(),
        eval_input_fn=input_fn(),
        train_steps=40,
    )
