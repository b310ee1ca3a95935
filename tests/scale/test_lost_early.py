"""Tests of processes that are lost while jax connects them, and of those that end because another one failed."""

import re
import time
from pathlib import Path

import pytest
from scale_runs import launch

pytestmark = pytest.mark.plugins  # estimator-cluster
_SOON = {
    "ESTIMATOR_OPTION_ESTIMATOR_CLUSTER_HEARTBEAT_SECS": "6",
    "ESTIMATOR_OPTION_ESTIMATOR_CLUSTER_GRACE_SECS": "3",
}


@pytest.mark.parametrize("when", ["connected", "introduced"])
def test_a_process_killed_as_soon_as_it_is_connected_is_named(tmp_path: Path, when: str) -> None:
    began = time.monotonic()
    done = launch("connecting_worker.py", 2, None, arguments=[str(tmp_path), when], timeout=90, variables=_SOON)
    lost = r"\[0\] .*Process 1 of 2 \(.+, pid \d+\) is lost: nothing was heard from it for 6 s"
    assert re.search(lost, done.stdout), done.stdout
    assert done.returncode == 75
    assert time.monotonic() - began < 60  # `launch` kills it after sixty seconds


def test_a_process_killed_after_the_roll_is_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    soon = {**_SOON, "ESTIMATOR_OPTION_ESTIMATOR_CLUSTER_HEARTBEAT_SECS": "2"}
    done = launch("connecting_worker.py", 2, None, arguments=[str(tmp_path), "called"], timeout=90, variables=soon)
    assert "[0] estimator: All 2 processes have reached" in done.stdout, done.stdout
    assert "but jax has not connected them within 6 s, so one of them is gone" in done.stdout
    assert re.search(r"so one of them is gone: 0 \(.+, pid \d+\), 1 \(.+, pid \d+\)\. ", done.stdout), done.stdout
    assert done.returncode == 75
    assert time.monotonic() - began < 60  # `launch` kills it after sixty seconds


def test_who_ends_because_process_0_failed_is_not_called_lost(tmp_path: Path) -> None:
    done = launch("connecting_worker.py", 2, None, arguments=[str(tmp_path), "chief"], timeout=90, variables=_SOON)
    assert re.search(
        r"\[1\] .*Process 0 of 2 .* is lost: it failed: RuntimeError: a hook of this process broke", done.stdout
    )
    assert "RuntimeError: a hook of this process broke" in done.stdout
    assert "Process 1 of 2" not in done.stdout, done.stdout
    assert done.returncode == 1
