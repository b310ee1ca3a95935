"""Tests of a run at a URL that is killed at a call of its storage, as is its successor: nothing is lost."""

import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from estimator_core.checkpoint import load_variables
from estimator_core.journal import read_lineage
from estimator_core.storage import open_storage
from estimator_core.summaries import read_eval_metrics
from estimator_storage.at_urls.directories import download_directory
from plugins.storage.tests import emulators
from plugins.storage.tests.remote.shelves import PREFIX, Shelf

STEPS = 20
ROOT = Path(__file__).parents[4]


def run(url, kill_at=None):
    """Runs one process, and returns its status."""
    arguments = [
        sys.executable,
        "-m",
        "plugins.storage.tests.remote.child",
        url,
        str(STEPS),
        *([] if kill_at is None else [str(kill_at)]),
    ]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, -9), done.stderr[-3000:]
    return done.returncode


def outcome(url, directory):
    """Returns the outcome of a run: weights, results, points of the event files, kept checkpoints."""
    storage = Shelf(url) if url.startswith(PREFIX) else open_storage(url)
    lineage = read_lineage(storage, whole=True)
    newest = lineage.newest
    variables = load_variables(download_directory(storage, newest.place, directory / "newest"))
    for entry in storage.list(""):
        if "tfevents" in entry.key:
            target = directory / "events" / entry.key
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(storage.get(entry.key))
    return {
        "weights": np.asarray(variables["weights"]).tolist(),
        "kept": sorted(lineage.saved),
        "results": results(storage, directory),
        "train": points(directory / "events", "loss"),
        "eval": points(directory / "events" / "eval", "loss"),
    }


def results(storage, directory):
    """Returns the results of the evaluation, as plugins read them."""
    (directory / "eval").mkdir(exist_ok=True)
    (directory / "eval" / "metrics.jsonl").write_bytes(storage.get("eval/metrics.jsonl"))
    return {step: metrics["loss"] for step, metrics in read_eval_metrics(directory / "eval").items()}


def points(directory, tag):
    found = EventAccumulator(str(directory))
    found.Reload()
    return [(event.step, event.value) for event in found.Scalars(tag)] if tag in found.Tags()["scalars"] else []


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    directory = tmp_path_factory.mktemp("undisturbed")
    url = f"{PREFIX}{directory / 'store'}"
    assert run(url) == 0
    return outcome(url, directory)


def killed_in_pairs(directory, seed, undisturbed, url=None):
    """Kills two processes, at calls drawn from the seed. The second process is the one that recovers."""
    draw = random.Random(seed)
    return killed_at([draw.randrange(120), draw.randrange(120)], directory, undisturbed, url)


def killed_at(kills, directory, undisturbed, url=None):
    url = url or f"{PREFIX}{directory / 'store'}"
    statuses = [run(url, at) for at in kills] + [run(url)]
    assert statuses[-1] == 0
    assert outcome(url, directory) == undisturbed, (kills, statuses)
    shutil.rmtree(directory, ignore_errors=True)
    return statuses.count(-9)


@pytest.mark.slow
def test_an_evaluation_that_overtakes_its_checkpoint_is_recorded_once(tmp_path, undisturbed):
    """The results of step 5 are in the event file while checkpoint 0 is still being written to the store."""
    assert killed_at([54, 24], tmp_path / "one", undisturbed) == 2


def test_two_kills_leave_what_no_kill_leaves(tmp_path, undisturbed):
    assert killed_in_pairs(tmp_path / "one", 0, undisturbed) > 0


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_thirty_pairs_of_kills(tmp_path, undisturbed):
    kills = sum(killed_in_pairs(tmp_path / str(seed), 100 + seed, undisturbed) for seed in range(30))
    print(f"{kills} kills in 30 runs")
    assert kills >= 40


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.plugins
def test_thirty_pairs_of_kills_over_s3(tmp_path, undisturbed, monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with emulators.s3_server(tmp_path) as address:
        for name, value in {**emulators.S3_KEYS, "AWS_ENDPOINT_URL": "http://{}:{}".format(*address)}.items():
            monkeypatch.setenv(name, value)
        emulators.s3_client().create_bucket(Bucket="runs")
        kills = sum(
            killed_in_pairs(tmp_path / str(seed), 200 + seed, undisturbed, f"s3://runs/{seed}") for seed in range(30)
        )
    print(f"{kills} kills in 30 runs")
    assert kills >= 40
