"""A run on several devices or in several processes is exported for one device."""

from pathlib import Path

import pytest
from jax import export as jax_export

from plugins.exporters.tests.spread_exports import check, exported


@pytest.mark.parametrize(
    "name",
    [
        "eight devices",
        # needs estimator-cluster
        pytest.param("two processes", marks=[pytest.mark.plugins, pytest.mark.slow]),
    ],
)
def test_it_is_exported_for_one_device_and_gives_what_the_run_predicts(tmp_path, name):
    paths = exported(name, "stablehlo", tmp_path)
    check(paths, tmp_path)
    programs = [program for path in paths for program in Path(path, "programs").iterdir()]
    assert {jax_export.deserialize(bytearray(one.read_bytes())).nr_devices for one in programs} == {1}
