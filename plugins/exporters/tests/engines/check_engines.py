"""Compares `estimator predict --on ray|beam` with the local command: `nox -s scoring_engines`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import apache_beam as beam
import numpy as np
import optax
import pyarrow as pa
import pytest
import ray
import ray.data
from apache_beam.ml.inference.base import RunInference
from apache_beam.testing.util import assert_that
from pyarrow import parquet

import estimator_core as ec
from estimator_core._cli.main import main
from estimator_core.errors import ArgumentError
from estimator_exporters import BeamScorer, RayScorer
from estimator_exporters.scoring.engines import beam_engine, local, ray_engine
from estimator_exporters.scoring.on_beam import LOCAL_RUNNER
from estimator_exporters.scoring.run import Job, score_files
from plugins.exporters.tests.engines.killing import killing

pytestmark = pytest.mark.filterwarnings("default")  # Ray and Beam use deprecated functions of their libraries
ROWS, BATCH = 1000, 16
ENGINES = {
    "ray": ray_engine(workers=2),
    "beam": beam_engine(),
    "beam in processes": beam_engine(options=["--direct_running_mode=multi_processing", "--direct_num_workers=2"]),
    "beam, each bundle twice": beam_engine(options=["--direct_runner_bundle_repeat=1"]),
}


def model_fn(features, labels, mode):
    kernel = ec.get_variable("kernel", (2, 3), lambda key, shape, dtype: np.arange(6, dtype=np.float32).reshape(2, 3))
    x = np.float32(1) * features["a"][:, None] * kernel[0] + features["b"][:, None] * kernel[1]
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"score": x, "double": features["a"] * 2, "text": features["b"]})
    return ec.EstimatorSpec(mode, loss=(kernel**2).sum(), train_op=optax.sgd(0.0))


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(address="local", num_cpus=4, log_to_driver=False, include_dashboard=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    """An export whose training replaced an empty `b` with 7 and skipped bad rows."""
    folder = tmp_path_factory.mktemp("model")
    config = ec.RunConfig(model_dir=str(folder / "model"), tf_random_seed=1)
    batch = {name: np.ones(4, np.float32) for name in "ab"}
    estimator = ec.Estimator(model_fn, config=config).train(lambda: [batch], steps=1)
    receiver = ec.export.build_raw_serving_input_receiver_fn({name: ec.export.Feature((None,)) for name in "ab"})
    (folder / "reading.json").write_text(json.dumps({"column_defaults": {"b": 7.0}, "on_error": "skip"}))
    assets = {"reading.json": str(folder / "reading.json")}
    return estimator.export_saved_model(str(folder / "export"), receiver, assets_extra=assets)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files: a table, a table with an empty number and a bad row, and a table with a few rows."""
    folder = tmp_path_factory.mktemp("rows")
    a = np.random.default_rng(0).normal(size=ROWS)
    ids = [f"r{number}" for number in range(ROWS)]
    parquet.write_table(pa.table({"id": ids, "a": a, "b": a / 3}), folder / "0.parquet")
    (folder / "1.csv").write_text("id,a,b\nx,1,2\ny,3,\nz,4,none\nw,5,6\n")
    (folder / "2.jsonl").write_text(
        "".join(json.dumps({"id": f"j{n}", "a": n / 7, "b": 1.0}) + "\n" for n in range(50))
    )
    return str(folder / "*")


def job(export, files, output, engine=local, **more):
    arguments = {"batch_size": BATCH, "keep": ("id",), **more}
    return Job(export=export, inputs=(files,), output=output, engine=engine, **arguments)


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        *((name, ".parquet") for name in ENGINES),
        ("ray", ".csv"),
        ("ray", ".jsonl"),
        ("beam", ".csv"),
        ("beam", ".jsonl"),
    ],
)
def test_the_file_is_that_of_the_local_command(export, files, tmp_path, name, suffix):
    expected, found = tmp_path / f"local{suffix}", tmp_path / f"engine{suffix}"
    done = score_files(job(export, files, expected)), score_files(job(export, files, found, ENGINES[name]))
    assert done[0] == done[1]
    assert done[0].rows == ROWS + 3 + 50
    assert found.read_bytes() == expected.read_bytes()


def test_a_killed_worker_of_ray_loses_and_repeats_no_row(export, files, tmp_path):
    expected, found, marker = tmp_path / "local.csv", tmp_path / "engine.csv", tmp_path / "died"
    score_files(job(export, files, expected))
    done = score_files(job(export, files, found, killing(ENGINES["ray"], marker)))
    assert marker.exists(), "no worker has died"
    assert done.rows == ROWS + 3 + 50
    assert found.read_bytes() == expected.read_bytes()


@pytest.mark.parametrize("name", ["ray", "beam"])
def test_a_bad_row_ends_it_with_its_place_and_leaves_what_was_there(export, files, tmp_path, name):
    output = tmp_path / "scores.csv"
    output.write_text("before")
    with pytest.raises(ArgumentError, match=r"1\.csv, line 4: column 'b': 'none' is not of type float32"):
        score_files(job(export, files, output, ENGINES[name], on_error="raise"))
    assert output.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["scores.csv"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--on", "ray", "--workers", "2"],
        ["--on", "beam", "--beam-options", f"--runner={LOCAL_RUNNER} --direct_num_workers=1"],
    ],
    ids=["ray", "beam"],
)
def test_the_command(export, files, tmp_path, capsys, arguments):
    command = ["predict", export, "--input", files, "--batch-size", str(BATCH), "--output"]
    assert main([*command, str(tmp_path / "local.csv")]) == 0
    assert main([*command, str(tmp_path / "engine.csv"), *arguments]) == 0
    assert "1053 rows scored" in capsys.readouterr().out
    assert (tmp_path / "engine.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()


def test_urls_of_inputs_and_of_what_the_workers_write(export, files, tmp_path):
    score_files(job(export, files, tmp_path / "local.csv"))
    engine = beam_engine(staging=f"file://{tmp_path}")
    score_files(job(f"file://{export}", f"file://{files}", tmp_path / "engine.csv", engine))
    assert (tmp_path / "engine.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()


def test_the_library_form_on_ray(export):
    rows = [{"id": number, "a": float(number), "b": 1.0} for number in range(64)]
    dataset = ray.data.from_items(rows).map_batches(
        RayScorer, fn_constructor_args=[export], batch_size=16, concurrency=1
    )
    found = {row["id"]: row for row in dataset.iter_rows()}
    assert sorted(found) == list(range(64))
    assert [found[number]["double"] for number in range(64)] == [2.0 * number for number in range(64)]
    np.testing.assert_allclose(found[2]["score"], [3, 6, 9])


def test_the_library_form_on_beam(export):
    rows = [{"a": np.float32(number), "b": np.float32(1)} for number in range(64)]

    def check(results):
        found = {float(one.example["a"]): one.inference for one in results}
        assert len(results) == len(found) == 64
        assert all(scores["double"] == 2 * a for a, scores in found.items())
        np.testing.assert_allclose(found[2.0]["score"], [3, 6, 9])

    with beam.Pipeline(LOCAL_RUNNER) as pipeline:
        assert_that(pipeline | beam.Create(rows) | RunInference(BeamScorer(export, batch_size=8)), check)


def test_a_killed_worker_of_beam_leaves_no_output_and_the_next_run_writes_each_row_once(export, files, tmp_path):
    """No output is written. Beam's local runner does not restart a lost worker, as distributed runners do."""
    score_files(job(export, files, tmp_path / "local.csv"))
    program = (
        "import sys; from plugins.exporters.tests.engines.killing import killing; "
        "from estimator_exporters.scoring.engines import beam_engine; "
        "from estimator_exporters.scoring.run import Job, score_files; "
        "export, files, output, marker, staging = sys.argv[1:]; "
        "score_files(Job(export=export, inputs=(files,), output=output, batch_size=16, keep=('id',), "
        "engine=killing(beam_engine(staging=staging), marker)))"
    )
    staging = tmp_path / "staging"
    output, marker = tmp_path / "engine.csv", tmp_path / "died"
    command = [sys.executable, "-c", program, export, files, str(output), str(marker), str(staging)]
    sources = [str(Path(__file__).parents[4]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sources)}
    assert subprocess.run(command, env=environment, check=False).returncode == -9
    assert marker.exists()
    assert not output.exists()
    assert list(staging.rglob("*.part")), "it has died before its work"
    subprocess.run(command, env=environment, check=True)
    assert output.read_bytes() == (tmp_path / "local.csv").read_bytes()
