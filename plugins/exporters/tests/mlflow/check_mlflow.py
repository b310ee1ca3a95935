"""MLflow logs, loads and serves exports. Needs MLflow: `nox -s mlflow_flavor`."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import mlflow
import numpy as np
import optax
import pandas as pd
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_exporters import log_mlflow_model, save_mlflow_model
from plugins.exporters.tests.small_model import receiver_fn, rows, trained

pytestmark = pytest.mark.filterwarnings("default")  # MLflow's own dependencies warn about each other


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path_factory.mktemp('store')}/runs.db")
    mlflow.set_experiment(
        experiment_id=mlflow.create_experiment("e", artifact_location=tmp_path_factory.mktemp("artifacts").as_uri())
    )


@pytest.fixture(scope="module")
def table_export(tmp_path_factory):
    """An export with two columns, one of them text. Its training replaced an empty `b` with 7."""

    def model_fn(features, labels, mode):
        weight = ec.get_variable("weight", (), lambda key, shape, dtype: np.full(shape, 2, dtype))
        scores = features["a"] * weight + features["b"]
        predictions = {"score": scores, "both": scores[:, None] * np.float32([1, 2])}
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions=predictions)
        return ec.EstimatorSpec(mode, loss=weight**2, train_op=optax.sgd(0.0))

    folder = tmp_path_factory.mktemp("table")
    (folder / "reading.json").write_text(json.dumps({"column_defaults": {"b": 7.0}, "on_error": "skip"}))
    config = ec.RunConfig(model_dir=str(folder / "model"), tf_random_seed=1)
    batch = {name: np.ones(4, np.float32) for name in "ab"}
    estimator = ec.Estimator(model_fn, config=config).train(lambda: [batch], steps=1)
    receiver = ec.export.build_raw_serving_input_receiver_fn({name: ec.export.Feature((None,)) for name in "ab"})
    assets = {"reading.json": str(folder / "reading.json")}
    return estimator.export_saved_model(str(folder / "export"), receiver, assets_extra=assets)


@pytest.fixture(scope="module")
def tensor_export(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tensor")
    return trained(folder / "model").export_saved_model(str(folder / "export"), receiver_fn)


def test_a_logged_model_is_loaded_and_scores_tables(store, table_export):
    with mlflow.start_run():
        info = log_mlflow_model(table_export, registered_as="scores")
    assert [column.name for column in info.signature.inputs] == ["a", "b"]
    for uri in (info.model_uri, "models:/scores/1"):
        model = mlflow.pyfunc.load_model(uri)
        found = model.predict(pd.DataFrame({"a": np.float32([1, 2]), "b": np.float32([3, np.nan])}))
        assert found["score"].tolist() == [5, 11]
        assert found["both"].tolist() == [[5, 10], [11, 22]]


def test_a_logged_model_scores_tensors(store, tensor_export):
    with mlflow.start_run():
        info = log_mlflow_model(tensor_export)
    x = rows(5)[0]["x"]
    found = mlflow.pyfunc.load_model(info.model_uri).predict({"x": x})
    expected = ec.export.load(tensor_export).signatures["serving_default"](x=x)
    np.testing.assert_array_equal(np.stack(found["logits"]), expected["logits"])
    assert found["class_ids"].tolist() == expected["class_ids"].tolist()


def test_a_signature_that_is_not_there_is_named(table_export, tmp_path):
    with pytest.raises(ArgumentError, match=r"no signature 'other'. Signatures: \['serving_default'\]"):
        save_mlflow_model(table_export, str(tmp_path / "model"), signature="other")


def test_a_model_that_was_written_twice_to_one_place_is_refused_by_mlflow(table_export, tmp_path):
    save_mlflow_model(table_export, str(tmp_path / "model"))
    with pytest.raises(mlflow.MlflowException, match="exist"):
        save_mlflow_model(table_export, str(tmp_path / "model"))


@pytest.mark.parametrize("kind", ["table", "tensor"])
def test_the_scoring_server_of_mlflow(request, tmp_path, kind):
    export = request.getfixturevalue(f"{kind}_export")
    save_mlflow_model(export, str(tmp_path / "model"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", str(tmp_path / "model"), "-p", str(port)]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with subprocess.Popen([*command, "--env-manager", "local"], env=environment, start_new_session=True) as process:
        try:
            wait_for(f"http://127.0.0.1:{port}/ping", process)
            if kind == "table":
                found = ask(port, {"dataframe_records": [{"a": 1, "b": 3}, {"a": 2, "b": None}]})
                assert [row["score"] for row in found] == [5, 11]
            else:
                x = rows(3)[0]["x"]
                found = ask(port, {"inputs": {"x": x.tolist()}})
                expected = ec.export.load(export).signatures["serving_default"](x=x)["logits"]
                np.testing.assert_allclose([row["logits"] for row in found], expected, rtol=1e-6)
        finally:
            os.killpg(process.pid, 15)


def wait_for(url, process):
    for _ in range(240):
        assert process.poll() is None, "the server has ended"
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail("the server does not answer")


def ask(port, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/invocations", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["predictions"]
