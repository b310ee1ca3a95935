"""Tests of InputContext."""

import pytest

from estimator_core._inputs import InputContext
from estimator_core.errors import ArgumentError


def test_the_batch_of_a_replica():
    context = InputContext(num_replicas_in_sync=8)
    assert context.get_per_replica_batch_size(64) == 8
    with pytest.raises(ArgumentError, match="The `global_batch_size` 65 is not divisible by `num_replicas_in_sync` 8"):
        context.get_per_replica_batch_size(65)


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_input_pipelines": 0},
        {"num_replicas_in_sync": 0},
        {"num_input_pipelines": 2, "input_pipeline_id": 2},
        {"input_pipeline_id": -1},
    ],
)
def test_impossible_contexts_are_refused(arguments):
    with pytest.raises(ArgumentError):
        InputContext(**arguments)
