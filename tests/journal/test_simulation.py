"""Tests of the journal, leases and collection under simulated faults: no obligation is violated."""

import pytest

from estimator_core.testing import simulation

KINDS = (*simulation.WITHIN_CONTRACT, *simulation.BY_HAND)
#: The numbers of schedules in the ordinary tests. The session `simulation` runs a hundred thousand (explore.py).
PAIRS, TRIPLES = 1000, 150


def test_every_single_fault():
    report = simulation.explore(simulation.model_dir_scenario(), faults=1, kinds=KINDS)
    print(f"\nsingle faults: {report}")
    assert report.failure is None, report
    assert report.schedules > 500


@pytest.mark.parametrize("seed", [18])
def test_pairs_of_faults(seed):
    report = simulation.explore(simulation.model_dir_scenario(), faults=2, schedules=PAIRS, seed=seed, kinds=KINDS)
    print(f"\npairs: {report}")
    assert report.failure is None, report
    assert report.schedules == PAIRS


def test_triples_of_faults_with_three_writers():
    scenario = simulation.model_dir_scenario(writers=3, saves=2, keep=2)
    report = simulation.explore(scenario, faults=3, schedules=TRIPLES, seed=18, kinds=KINDS)
    print(f"\ntriples: {report}")
    assert report.failure is None, report
    assert report.schedules == TRIPLES
