"""Tests of a scoring on engines: pieces that can be sent, in an order that shows lost and repeated rows."""

import pickle

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.export import Feature
from estimator_exporters.scoring.batch import Batch
from estimator_exporters.scoring.engines import beam_engine, local, ray_engine
from estimator_exporters.scoring.locations import locations_of
from estimator_exporters.scoring.pieces import Part, in_order, part_of, pieces_of
from estimator_exporters.scoring.plan import Plan
from estimator_exporters.scoring.read import Reading
from estimator_exporters.scoring.score import score


@pytest.fixture
def plan(export):
    return Plan(
        export=export, signature="serving_default", reading=Reading(inputs={"x": Feature((None, 3))}, batch_size=4)
    )


@pytest.fixture
def files(tmp_path):
    for number, rows in enumerate((10, 3)):
        np.savez(tmp_path / f"{number}.npz", x=np.random.default_rng(number).normal(size=(rows, 3)).astype(np.float32))
    return [str(tmp_path / "*.npz")]


def sent(one):
    """The object as another process receives it."""
    return pickle.loads(pickle.dumps(one))


def parts_of(plan, locations):
    signature = sent(plan).opened()
    return [
        sent(part_of(sent(piece), signature, plan))
        for file, location in enumerate(locations)
        for piece in pieces_of(file, location, plan.reading)
    ]


def test_pieces_of_other_processes_make_what_is_scored_here(plan, files):
    locations = locations_of(files)
    found = list(in_order(parts_of(plan, locations), locations))
    expected = list(local(plan, plan.opened(), files))
    assert [one.rows for one in found] == [one.rows for one in expected] == [4, 4, 2, 3]
    for mine, other in zip(found, expected, strict=True):
        for name, column in other.columns.items():
            np.testing.assert_array_equal(mine.columns[name], column)


@pytest.mark.parametrize("lost", [0, 1, 3, -1])
def test_a_part_that_is_lost_or_comes_twice_is_no_result(plan, files, lost):
    locations = locations_of(files)
    parts = parts_of(plan, locations)
    place = lost % len(parts)
    with pytest.raises(RuntimeError, match="rows were lost"):
        list(in_order([*parts[:place], *parts[place + 1 :]], locations))
    with pytest.raises(RuntimeError, match="rows were lost"):
        list(in_order([*parts[: place + 1], *parts[place:]], locations))


def test_the_first_fault_is_told_in_its_words():
    parts = [Part(0, 0, None, "a.csv, row 2: it is bad."), Part(1, 0, None)]
    with pytest.raises(ArgumentError, match=r"a\.csv, row 2: it is bad\."):
        list(in_order(parts, ["a.csv", "b.csv"]))


def test_files_at_urls_are_listed_and_not_copied(files):
    (pattern,) = files
    expected = [f"file://{location}" for location in locations_of(files)]
    assert len(expected) == 2
    assert locations_of([f"file://{pattern}"]) == expected
    assert locations_of([expected[1]]) == expected[1:]
    with pytest.raises(ArgumentError, match="no file matches"):
        locations_of([f"file://{pattern}.gz"])


def test_short_batches_are_filled_up_so_that_there_are_few_programs():
    sizes = []

    def signature(x):
        sizes.append(len(x))
        return {"y": x * 2}

    batches = [Batch("f", 1, {"x": np.arange(rows)}, {}) for rows in (1, 3, 5, 9, 10)]
    found = list(score(signature, batches, batch_size=10, skip_bad_rows=False))
    assert sizes == [1, 4, 8, 10, 10]
    assert [len(one.columns["y"]) for one in found] == [1, 3, 5, 9, 10]


@pytest.mark.parametrize(("engine", "extra"), [(ray_engine, "ray"), (beam_engine, "beam")])
def test_an_engine_that_is_not_installed_is_named_with_its_extra(monkeypatch, engine, extra):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match=rf"pip install 'estimator-exporters\[predict,{extra}\]'"):
        engine()


def test_a_signature_that_is_not_there_is_named(export):
    plan = Plan(export=export, signature="other", reading=Reading(inputs={}, batch_size=1))
    assert ec.export.load(export).signatures.keys() == {"serving_default"}
    with pytest.raises(ArgumentError, match=r"no signature 'other'. Signatures: \['serving_default'\]"):
        plan.opened()
