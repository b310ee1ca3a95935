"""Tests that each package of this repository works with what it requires, without the packages of its extras."""

import tomllib
from pathlib import Path

import pytest

from estimator_core.plugins import Plugins

ROOT = Path(__file__).parents[2]
PROJECTS = {
    project["name"]: project
    for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))
    for project in [tomllib.loads(path.read_text(encoding="utf-8"))["project"]]
}


def required(distribution: str) -> set[str]:
    """Returns a distribution of this repository, and those that an installation without extras brings."""
    direct = {one.partition(">=")[0].partition("[")[0] for one in PROJECTS[distribution]["dependencies"]}
    return {distribution}.union(*(required(one) for one in direct & PROJECTS.keys()))


@pytest.mark.parametrize("distribution", PROJECTS)
def test_a_plugin_loads_with_the_packages_that_it_requires(distribution: str) -> None:
    records = Plugins(only=sorted(required(distribution)), environ={}).records()
    assert {one.distribution: one.error for one in records if one.status == "failed"} == {}
    assert distribution in {one.distribution for one in records if one.status == "loaded"}
