"""Tests of the `onnx` format after runs on several devices and in several processes."""

import pytest

from plugins.exporters.tests.spread_exports import RUNS, check, exported


@pytest.mark.parametrize("name", RUNS)
def test_it_is_exported_for_one_device_and_gives_what_the_run_predicts(tmp_path, name):
    check(exported(name, "onnx", tmp_path), tmp_path)
