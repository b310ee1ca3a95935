"""On real data from a CSV file, models are as accurate as scikit-learn's on the same split, within one point."""

import csv

import numpy as np
import optax
import pytest

import estimator_canned_tabular as tab
import estimator_core as ec
from plugins.canned_tabular.tests.given_weights import QUIET

sklearn = pytest.importorskip("sklearn")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cancer(tmp_path_factory):
    """The breast cancer data, written to a file and read again. Training and test rows are standardised."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    data = load_breast_cancer()
    path = tmp_path_factory.mktemp("data") / "cancer.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[*row.tolist(), label] for row, label in zip(data.data, data.target, strict=True)])
    rows = np.loadtxt(path, delimiter=",")
    train, test = train_test_split(rows, test_size=0.3, random_state=0, stratify=rows[:, -1])
    mean, scale = train[:, :-1].mean(0), train[:, :-1].std(0)
    return [((part[:, :-1] - mean) / scale, part[:, -1].astype(np.int64)) for part in (train, test)]


def accuracy(make, cancer, folder, steps):
    (x, y), (held_x, held_y) = cancer
    config = ec.RunConfig(model_dir=str(folder), tf_random_seed=0, **QUIET)
    estimator = make([tab.numeric_column("x", x.shape[1])], config)
    feed = {"batch_size": 64, "num_epochs": None, "shuffle": True, "seed": 0}
    estimator.train(ec.inputs.numpy_input_fn({"x": x.astype(np.float32)}, y, **feed), steps=steps)
    return estimator.evaluate(lambda: [({"x": held_x.astype(np.float32)}, held_y)])["accuracy"]


def test_linear(cancer, tmp_path):
    from sklearn.linear_model import LogisticRegression

    peer = LogisticRegression().fit(*cancer[0]).score(*cancer[1])
    found = accuracy(lambda x, config: tab.LinearClassifier(x, config=config), cancer, tmp_path, 600)
    assert found >= peer - 0.01


def test_deep(cancer, tmp_path):
    from sklearn.neural_network import MLPClassifier

    peer = MLPClassifier((32,), max_iter=500, random_state=0).fit(*cancer[0]).score(*cancer[1])
    make = lambda x, config: tab.DNNClassifier([32], x, optimizer=optax.adam(1e-3), config=config)  # noqa: E731
    assert accuracy(make, cancer, tmp_path, 1500) >= peer - 0.01
