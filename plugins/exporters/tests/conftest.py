"""A trained estimator and its export, shared by the tests of a module: training anew would be slow."""

import pytest

from plugins.exporters.tests.small_model import receiver_fn, trained


@pytest.fixture(scope="module")
def estimator(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def export(estimator, tmp_path_factory):
    """One export, not to be changed: copy it first."""
    return estimator.export_saved_model(str(tmp_path_factory.mktemp("exports")), receiver_fn)
