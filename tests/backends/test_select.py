"""Tests of the selection of the backend of a run."""

import logging

import pytest

from estimator_core._backends.contract import Available, Unavailable
from estimator_core._backends.devices import select_backend
from estimator_core.errors import BackendUnavailableError, PluginError


class Fake:
    """A backend that reports the values passed to it."""

    def __init__(self, name, probed):
        self.name, self._probed = name, probed

    def probe(self):
        return self._probed


def choose(name, **backends):
    """Chooses among backends by their priority. A text is the reason why a backend is unavailable, and an error stands
    for a broken one.
    """

    def get(asked):
        given = backends[asked]
        if isinstance(given, Exception):
            raise given
        probed = Available(priority=given, summary="") if isinstance(given, int) else Unavailable(reason=given)
        return lambda: Fake(asked, probed)

    return select_backend(name, get, list(backends)).name


def test_auto_takes_the_best_that_is_there(caplog):
    assert choose("auto", cpu=0, gpu=10, tpu="No chips.") == "gpu"
    with caplog.at_level(logging.WARNING, "estimator_core"):
        assert choose("auto", cpu=0, gpu=PluginError("no module")) == "cpu"
    assert "backend gpu is left out, because its plugin is broken: no module" in caplog.text


def test_a_backend_that_is_not_there_is_refused_with_its_reason():
    with pytest.raises(BackendUnavailableError, match=r"'tpu' was requested but cannot be used here: No chips\."):
        choose("tpu", cpu=0, tpu="No chips.")


def test_two_equal_backends_are_refused():
    with pytest.raises(BackendUnavailableError, match=r"\['gpu', 'tpu'\] have the same priority here"):
        choose("auto", cpu=0, gpu=10, tpu=10)
