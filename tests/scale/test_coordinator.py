"""Tests of the contract of a Coordinator for a single process, and of the functions built on it."""

import json
from pathlib import Path

import pytest

import estimator_core as ec
from estimator_core._cluster.processes import chief_says, gather
from estimator_core.coordinator import ALONE, Coordinator, Lost
from estimator_core.errors import PluginLookupError


def test_alone_agrees_with_itself() -> None:
    alone: Coordinator = ALONE
    assert (alone.index, alone.count, alone.lost()) == (0, 1, None)
    assert gather(alone, "any", [1, None]) == [[1, None]]
    assert chief_says(alone, "any", {"a": 1}) == {"a": 1}
    alone.barrier("any", timeout=0.0)


class _Two:
    """A coordinator of the first of two processes. The other one returns fixed answers or is lost."""

    index, count = 0, 2

    def __init__(self, gone: Lost | None = None) -> None:
        self._gone = gone
        self.failed: list[BaseException] = []

    def agree(self, topic: str, value: str, timeout: float) -> list[str]:
        return [value, json.dumps("other")]

    def tell(self, topic: str, value: str | None, timeout: float) -> str:
        assert value is not None
        return value

    def barrier(self, topic: str, timeout: float) -> None:
        pass

    def fail(self, error: BaseException) -> None:
        self.failed.append(error)

    def lost(self) -> Lost | None:
        return self._gone

    def close(self) -> None:
        pass


def test_values_travel_as_json() -> None:
    two = _Two()
    assert gather(two, "any", {"rows": [1, 2]}) == [{"rows": [1, 2]}, "other"]
    assert chief_says(two, "any", None) is None


def test_several_processes_without_the_package_are_refused_by_its_name(tmp_path: Path) -> None:
    config = ec.RunConfig(model_dir=str(tmp_path), processes=ec.Processes("127.0.0.1:1", count=2, index=0))
    estimator = ec.Estimator(lambda features: None, config=config, plugins=ec.Plugins(autoload=False))
    with pytest.raises(PluginLookupError, match=r"no coordinator 'estimator-cluster:jax'[\s\S]* estimator-cluster"):
        estimator.train(lambda: [], steps=1)
