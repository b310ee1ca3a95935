"""Tests of what a run at a URL must not change: runs below its model_dir, a successor, results of other processes."""

from pathlib import Path

import numpy as np

import estimator_core as ec
from estimator_core.journal import read_lineage, results_in
from estimator_core.plugins import Plugins
from plugins.storage.tests.remote.linear import batches, held_out, model_fn
from plugins.storage.tests.remote.shelves import PREFIX, Shelf


def estimator(url: str, plugins: Plugins) -> ec.Estimator:
    config = ec.RunConfig(model_dir=url, tf_random_seed=1, save_checkpoints_steps=5, save_summary_steps=5)
    return ec.Estimator(model_fn, config=config, plugins=plugins)


def contents(url: str, below: str = "") -> dict[str, bytes]:
    storage = Shelf(url)
    return {entry.key: storage.get(entry.key) for entry in storage.list(below)}


def test_a_run_leaves_the_runs_below_its_model_dir_alone(url, plugins, forget):
    below = estimator(f"{url}/below", plugins)
    below.train(batches, max_steps=5)
    below.evaluate(held_out)
    before = contents(url, "below")
    assert len([key for key in before if "tfevents" in key]) == 2
    above = estimator(url, plugins)
    above.train(batches, max_steps=5)
    above.evaluate(held_out)
    assert contents(url, "below") == before
    assert not Path(above.model_dir, "below").exists(), "it was copied to this machine"


def test_an_audit_looks_at_its_own_run_alone(url, plugins, forget):
    from estimator_storage.at_urls import faults_in_store

    for one in (url, f"{url}/below"):
        estimator(one, plugins).train(batches, max_steps=5)
    assert list(faults_in_store(Shelf(url), read_lineage(Shelf(url)))) == []


def test_a_model_dir_that_was_removed_since_begins_from_scratch(url, plugins, forget):
    first = estimator(url, plugins)
    first.train(batches, max_steps=5)
    first.evaluate(held_out)
    begun = first.get_variable_value("weights")
    first.train(batches, max_steps=10)
    Shelf(url).delete(contents(url))
    again = estimator(url, plugins)
    again.train(batches, max_steps=5)
    np.testing.assert_array_equal(again.get_variable_value("weights"), begun)
    lineage = read_lineage(Shelf(url), whole=True)
    assert ([took.step for took in lineage.starts], sorted(lineage.saved)) == ([0], [0, 5])
    assert not any(key.startswith("eval/") for key in contents(url)), "results of the run that was removed came back"


def test_results_of_other_processes_stay_in_the_file(url, plugins, forget):
    first = estimator(url, plugins)
    first.train(batches, max_steps=10)
    forget()
    second = estimator(url, plugins)
    second.evaluate(held_out, checkpoint_path=f"{second.model_dir}/checkpoints/10")
    forget()
    third = estimator(url, plugins)
    third.evaluate(held_out, name="other")
    first.train(batches, max_steps=15)
    first.evaluate(held_out)
    second.evaluate(held_out, name="other")
    recorded = read_lineage(Shelf(url)).evaluations
    assert set(recorded) == {("", 10), ("other", 10), ("", 15), ("other", 15)}
    assert {(one.name, one.step): one.metrics for one in results_in(url.removeprefix(PREFIX))} == {
        key: one.metrics for key, one in recorded.items()
    }
