"""Tests of the package that lets several processes draw and decide together: a missing or forbidden one is named."""

import sys

import pytest

from estimator_core._loop.agreement import of_several
from estimator_core.errors import ArgumentError
from estimator_core.plugins import Plugins


def test_a_forbidden_package_is_not_imported() -> None:
    with pytest.raises(ArgumentError, match=r"A run of several processes needs estimator-cluster, which is blocked"):
        of_several(Plugins(block=["estimator-cluster"], environ={}))


def test_an_absent_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "estimator_cluster.several", None)
    with pytest.raises(ArgumentError, match=r"comes with estimator-cluster: pip install estimator-cluster"):
        of_several(Plugins(autoload=False, environ={}))
