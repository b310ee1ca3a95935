"""Evaluates one model with every kind of head on all devices of this process and prints the metrics as JSON.

test_devices.py runs it in a new process each time, with different numbers of CPU devices.
"""

import json
import sys
import tempfile

import jax
import numpy as np
import optax

import estimator_core as ec
import estimator_heads as eh

ROWS, TIME = 101, 3  # a prime: no batch size and no number of devices divides it
NAMES = ["O", "B-A", "I-A"]


def heads():
    """Every head, with weights where it takes them."""
    parts = [
        eh.BinaryClassHead(weight_column="weight", thresholds=[0.3], name="binary"),
        eh.MultiClassHead(4, weight_column="weight", name="multi_class"),
        eh.MultiLabelHead(3, weight_column="weight", name="multi_label"),
        eh.RegressionHead(label_dimension=2, weight_column="weight", name="regression"),
        eh.PoissonRegressionHead(name="poisson"),
        eh.LogisticRegressionHead(name="logistic"),
    ]
    return {
        "multi": eh.MultiHead(parts),
        "sequence": eh.SequentialHeadWrapper(eh.BinaryClassHead(weight_column="step_weight"), "mask", "step_weight"),
        "tokens": eh.TokenClassificationHead(3, mask_column="mask", label_names=NAMES, spans=True),
        "ranking": eh.RankingHead(list_size=5, weight_column="weight"),
        "retrieval": eh.RetrievalHead(2, weight_column="weight", candidate_id_column="candidate"),
    }


def data():
    rng = np.random.default_rng(17)
    features = {
        "x": rng.normal(size=(ROWS, 4)).astype(np.float32),
        "weight": rng.uniform(0.1, 3.0, ROWS).astype(np.float32),
        "step_weight": rng.uniform(0.1, 3.0, (ROWS, TIME)).astype(np.float32),
        "candidate": rng.integers(0, 30, ROWS),
        "mask": np.arange(TIME) < rng.integers(1, TIME + 1, (ROWS, 1)),
    }
    labels = {
        "multi": {
            "binary": rng.integers(0, 2, ROWS),
            "multi_class": rng.integers(0, 4, ROWS),
            "multi_label": rng.integers(0, 2, (ROWS, 3)),
            "regression": rng.normal(size=(ROWS, 2)).astype(np.float32),
            "poisson": rng.poisson(2.0, ROWS).astype(np.float32),
            "logistic": rng.uniform(0, 1, ROWS).astype(np.float32),
        },
        "sequence": rng.integers(0, 2, (ROWS, TIME, 1)),
        "tokens": rng.integers(0, 3, (ROWS, TIME)),
        "ranking": rng.integers(-1, 4, (ROWS, 5)),
        "retrieval": None,
    }
    return features, labels


def model_fn(features, labels, mode, params):
    head = heads()[params["head"]]
    steps = TIME if params["head"] in ("sequence", "tokens") else 1
    kernel = ec.get_variable("kernel", (4, steps * head.logits_dimension))
    logits = features["x"] @ kernel
    if steps > 1:
        logits = logits.reshape(-1, steps, head.logits_dimension)
    return head.create_estimator_spec(features, mode, logits, labels, optimizer=optax.sgd(0.1))


def main(directory, batch_size):
    features, labels = data()
    found = {}
    for name in heads():
        config = ec.RunConfig(tf_random_seed=1, mesh={"data": -1})
        estimator = ec.Estimator(model_fn, f"{directory}/{name}", config, params={"head": name})
        train = ec.inputs.numpy_input_fn(features, labels[name], batch_size=ROWS, num_epochs=None, shuffle=False)
        once = ec.inputs.numpy_input_fn(features, labels[name], batch_size=batch_size, num_epochs=1, shuffle=False)
        if not ec.latest_checkpoint(estimator.model_dir):
            estimator.train(train, steps=2)
        found[name] = estimator.evaluate(once)
    print(json.dumps({"devices": len(jax.devices()), "metrics": found}))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(), int(sys.argv[2]))
