"""Tests of `ec.export.load` with broken or missing format plugins."""

import json
from types import ModuleType

import pytest

import estimator_core as ec
from estimator_core.errors import ExportError
from estimator_core.plugins import Component, Plugins
from estimator_core.testing import array_format


def broken():
    plugin = ModuleType("broken_format_plugin")
    plugin.ESTIMATOR_PLUGIN_API = (1, 0)
    plugin.estimator_components = lambda: [
        Component(kind="format", name="absent", target="no_such_module:Format", summary="Not to be imported.")
    ]
    return plugin


@pytest.fixture
def export(tmp_path):
    (tmp_path / "arrays.json").write_text(
        json.dumps({"export": "", "variables": {}, "dtypes": {}, "signatures": [], "global_step": 3})
    )
    return tmp_path


def test_a_broken_format_does_not_keep_others_from_reading(export, caplog):
    plugins = Plugins(extra=[broken(), array_format])
    assert ec.export.load(export, plugins=plugins).manifest["global_step"] == 3
    assert "export format absent is left out, because its plugin is broken" in caplog.text
    assert "no_such_module" in caplog.text


def test_what_no_working_format_reads_names_the_broken_one(tmp_path):
    with pytest.raises(ExportError, match=r"broken: format 'absent' of .*no_such_module"):
        ec.export.load(tmp_path, plugins=Plugins(extra=[broken(), array_format]))


def test_what_no_format_reads_names_the_formats(tmp_path):
    plugins = Plugins(extra=[array_format], only=["estimator-core", array_format.__name__])
    with pytest.raises(ExportError, match=r"contains no export that an installed format can read \(.*arrays.*\)"):
        ec.export.load(tmp_path, plugins=plugins)


def test_a_directory_that_is_not_there_is_told_as_such(tmp_path):
    with pytest.raises(ExportError, match=r"^There is no directory .*absent\. Correct the path of the export\.$"):
        ec.export.load(tmp_path / "absent")
