"""A trained estimator and its export, shared by the tests of a module because training is slow."""

import pytest

from plugins.exporters.tests.small_model import receiver_fn, trained


@pytest.fixture(scope="module")
def estimator(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def export(estimator, tmp_path_factory):
    """The path of a shared export. Tests copy it before they change it."""
    return estimator.export_saved_model(str(tmp_path_factory.mktemp("exports")), receiver_fn)
