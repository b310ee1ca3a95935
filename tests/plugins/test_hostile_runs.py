"""Tests of runs with broken plugins: runs that do not need them continue, and runs that request them by name report the
cause.
"""

import pytest

from estimator_core.errors import PluginError, PluginLookupError
from estimator_core.testing import tiny_estimator, tiny_input_fn, tiny_receiver_fn
from tests.plugins.test_hostile import add_everything_broken

ABSENT = "hostile.absent:Thing"


@pytest.fixture
def everything(site):
    """Installs every broken plugin, colliding plugins, and components of each kind whose target does not exist."""
    add_everything_broken(site)
    site.add_component("twin-one", "head", "twin")
    site.add_component("twin-two", "head", "twin")
    site.add_component("usurper", "hook", "step_counter")
    for kind in ("head", "hook", "exporter", "format", "adapter", "input", "transform"):
        site.add_component(f"absent-{kind}", kind, "absent", ABSENT)
    return site


def test_a_run_that_needs_none_of_them(everything, tmp_path):
    estimator = tiny_estimator(tmp_path / "model", plugins=everything.plugins())
    estimator.train(tiny_input_fn(), steps=3)
    assert estimator.evaluate(tiny_input_fn(epochs=1))["global_step"] == 3
    assert len(list(estimator.predict(tiny_input_fn(epochs=1)))) == 40


def test_a_backend_that_cannot_be_imported_is_passed_over_by_auto(site, tmp_path):
    site.add_component("absent-backend", "backend", "absent", ABSENT)
    tiny_estimator(tmp_path / "model", plugins=site.plugins()).train(tiny_input_fn(), steps=1)


def test_a_backend_asked_for_by_name(everything, tmp_path):
    everything.add_component("absent-backend", "backend", "absent", ABSENT)
    estimator = tiny_estimator(tmp_path / "model", plugins=everything.plugins(), backend="absent")
    with pytest.raises(PluginError, match=r"backend 'absent' of absent-backend 1\.0 \(hostile\.absent:Thing\)"):
        estimator.train(tiny_input_fn(), steps=1)
    other = tiny_estimator(tmp_path / "other", plugins=everything.plugins(), backend="abcent")
    with pytest.raises(PluginLookupError, match="Did you mean 'absent'"):
        other.train(tiny_input_fn(), steps=1)


def test_a_format_asked_for_by_name(everything, tmp_path):
    estimator = tiny_estimator(tmp_path / "model", plugins=everything.plugins()).train(tiny_input_fn(), steps=1)
    with pytest.raises(PluginError, match="format 'absent' of absent-format"):
        estimator.export_saved_model(str(tmp_path / "exports"), tiny_receiver_fn, format="absent")
    with pytest.raises(
        PluginLookupError, match=r"hostile-import-error 1\.0 failed to load and may be what provides it"
    ):
        estimator.export_saved_model(str(tmp_path / "exports"), tiny_receiver_fn, format="tflite")
    assert not (tmp_path / "exports").exists()


def test_an_organisations_broken_tracker_does_not_stop_the_run(site, tmp_path, caplog):
    site.add("tracker", "def estimator_run_start(run):\n    raise OSError('tracker is down')\n")
    estimator = tiny_estimator(tmp_path / "model", plugins=site.plugins())
    assert estimator.train(tiny_input_fn(), steps=2).latest_checkpoint().endswith("2")
    assert "estimator_run_start of tracker 1.0 failed and was left out: OSError: tracker is down" in caplog.text
    strict = tiny_estimator(tmp_path / "strict", plugins=site.plugins(strict=True))
    with pytest.raises(PluginError, match="tracker is down"):
        strict.train(tiny_input_fn(), steps=2)
