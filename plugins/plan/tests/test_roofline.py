"""Tests of times from peak figures, against figures computed by hand."""

import pytest

from estimator_plan.collectives import Collective
from estimator_plan.roofline import roofline
from plugins.plan.tests.lent_cpus import LentCPUs

FIGURES = LentCPUs().topology("cpu", (8,)).figures


def collective(sent, crosses=False):
    return Collective(
        kind="all-reduce",
        group_size=8,
        axes=("data",),
        crosses_groups=crosses,
        count=1,
        payload_bytes=sent,
        sent_bytes=sent,
    )


def test_each_dtype_has_its_own_peak():
    times = roofline({"float32": 8e12, "bfloat16": 16e12}, 0, (), FIGURES, 8)
    assert times.compute == pytest.approx(1.0 + 0.5)


def test_the_busiest_resource_bounds_the_step():
    times = roofline({"float32": 8e12}, 3 * 10**11, (collective(10**10),), FIGURES, 8)
    assert (times.compute, times.memory, times.links, times.network) == pytest.approx((1.0, 3.0, 1.0, None))
    assert (times.at_least, times.at_most, times.bound_by) == (3.0, 5.0, "memory")
    assert times.utilisation == pytest.approx(1 / 3)


def test_what_crosses_groups_takes_the_network():
    times = roofline({"float32": 8e12}, 0, (collective(10**10), collective(5 * 10**9, crosses=True)), FIGURES, 8)
    assert (times.links, times.network, times.bound_by) == (1.0, 5.0, "network")


def test_what_is_not_known_is_left_out():
    times = roofline({"float32": 8e12}, None, None, FIGURES, 8)
    assert (times.memory, times.links, times.network) == (None, None, None)
    assert (times.at_least, times.utilisation) == (1.0, None)
    assert roofline({"int8": 1.0}, None, None, FIGURES, 8).at_least is None
