"""Tests that sessions share the compiled modules of distributions that are identical in every byte."""

from __future__ import annotations

from importlib.util import cache_from_source
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


def environment(folder: Path, record: str) -> tuple[Any, Path]:
    """Returns a session with one installed distribution, and the path of its compiled module."""
    site = folder / "lib" / "python3.11" / "site-packages"
    for name in ("plum", "plum-1.dist-info"):
        (site / name).mkdir(parents=True)
    (site / "plum-1.dist-info" / "RECORD").write_text(f"plum/stone.py,{record},5\n../../bin/plum.py,,\n")
    return SimpleNamespace(virtualenv=SimpleNamespace(location=str(folder))), site / cache_from_source("plum/stone.py")


def test_a_later_session_takes_what_the_first_has_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / ".ci")
    from shared_modules import shared_modules

    first, compiled = environment(tmp_path / "first", "sha256=a")
    with shared_modules(first):
        compiled.parent.mkdir(exist_ok=True)
        compiled.write_text("compiled")
    same, taken = environment(tmp_path / "same", "sha256=a")
    other, missing = environment(tmp_path / "other", "sha256=b")
    with shared_modules(same), shared_modules(other):
        assert taken.read_text() == "compiled"
        assert not missing.exists()
    with shared_modules(SimpleNamespace(virtualenv=SimpleNamespace(location=None))):  # a session without one
        pass
