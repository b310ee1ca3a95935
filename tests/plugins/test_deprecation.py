"""Tests of deprecations: the warning points at the line that uses the deprecated name."""

from __future__ import annotations

import linecache
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.plugins.fake_site import Site

PLUGIN = """
from estimator_core.plugins import Component

def estimator_components():
    return [
        Component(kind="head", name="old", target="losses.heads:Old", deprecated="'new'; it goes with losses 2.0"),
        Component(kind="head", name="new", target="losses.heads:Old"),
    ]
"""
HEADS = """
from estimator_core.plugins import warn_deprecated

class Old: ...

def mean():
    warn_deprecated("losses.heads.mean", instead="losses.heads.Mean")

def through():
    mean()
"""


def where(told: warnings.WarningMessage) -> tuple[str, str]:
    """Returns the file and the text of the line."""
    return told.filename, linecache.getline(told.filename, told.lineno).strip()


@pytest.fixture
def losses(site: Site) -> Site:
    """A package with a deprecated head and a deprecated function."""
    site.add("losses", PLUGIN, files={"heads.py": HEADS})
    return site


def test_who_looks_up_a_deprecated_component_is_warned_at_his_line(losses: Site) -> None:
    plugins = losses.plugins()
    with pytest.warns(
        FutureWarning, match=r"^head 'old' of losses .* is deprecated: use 'new'; it goes with losses 2.0\.$"
    ) as told:
        plugins.get("head", "old")
    assert [where(one) for one in told] == [(__file__, 'plugins.get("head", "old")')]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plugins.get("head", "new")
        plugins.find("head", "old")  # it is not used at all


@pytest.mark.parametrize("name", ["mean", "through"])
def test_frames_of_the_package_that_warns_are_left_out(losses: Site, name: str) -> None:
    from losses import heads  # type: ignore[import-not-found]

    with pytest.warns(FutureWarning, match="losses.heads.mean is deprecated: use losses.heads.Mean") as told:
        getattr(heads, name)()
    assert [where(one) for one in told] == [(__file__, "getattr(heads, name)()")]


def test_a_program_that_is_started_sees_its_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from estimator_core.plugins import warn_deprecated\n\n\n"
        "def use():\n    warn_deprecated('a', instead='b')\n\n\nuse()\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    assert f"{program}:5: FutureWarning: a is deprecated: use b." in done.stderr
