"""Tests of grain's data sets and loaders, which are read and positioned by their own state."""

import json

import numpy as np
import pytest

from estimator_core._inputs import InputPosition, open_input

pytestmark = pytest.mark.libraries

grain = pytest.importorskip("grain.python")


class Rows:
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return {"x": np.float32(index)}

    def __repr__(self):
        return "Rows(20)"


def map_dataset():
    return grain.MapDataset.source(Rows()).shuffle(seed=3).batch(4)


def iter_dataset():
    return grain.MapDataset.source(Rows()).shuffle(seed=3).to_iter_dataset().batch(4)


def data_loader():
    sampler = grain.IndexSampler(20, shuffle=True, seed=3, num_epochs=1, shard_options=grain.NoSharding())
    return grain.DataLoader(data_source=Rows(), sampler=sampler, operations=[grain.Batch(4)], worker_count=0)


MAKERS = {
    "MapDataset": map_dataset,
    "IterDataset": iter_dataset,
    "DataLoader": data_loader,
    "iterator": lambda: iter(map_dataset()),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_any_cut_continues_through_json(kind):
    make = MAKERS[kind]
    batches = list(open_input(make, mode="train"))
    whole = [b.features["x"].tolist() for b in batches]
    assert sorted(sum(whole, [])) == list(range(20))  # noqa: RUF017
    for cut, batch in enumerate(batches[:-1], start=1):
        position = InputPosition.from_json(json.loads(json.dumps(batch.position.to_json())))
        resumed = open_input(make, mode="train", position=position)
        assert [b.features["x"].tolist() for b in resumed] == whole[cut:]
        assert resumed.restored.startswith(f"Input continues after {4 * cut} examples")


def test_the_state_saved_with_a_batch_does_not_move_on():
    source = open_input(map_dataset, mode="train")
    first = next(source).position
    saved = json.dumps(first.to_json())
    next(source)
    assert json.dumps(first.to_json()) == saved


def test_another_data_set_starts_again():
    source = open_input(map_dataset, mode="train")
    next(source)
    other = open_input(lambda: map_dataset()[:3], mode="train", position=source.position)
    next(other)
    assert other.restored.startswith("Input starts again: ")
