"""Fixtures of the tests of compiled programs."""

import jax
import pytest


@pytest.fixture
def compiled(monkeypatch):
    """The programs that were compiled, by name."""
    names, compile_it = [], jax.stages.Lowered.compile

    def counted(self, *args, **kwargs):
        names.append(self.as_text().partition("module @")[2].partition(" ")[0])
        return compile_it(self, *args, **kwargs)

    monkeypatch.setattr(jax.stages.Lowered, "compile", counted)
    return names
