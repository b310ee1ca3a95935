"""The coordinator suite passes a sound coordinator and catches broken ones."""

import pytest

from estimator_core.testing import CoordinatorSuite


class TestOverFiles(CoordinatorSuite):
    connects = "plugins.testing.tests.sound_coordinator:connect"
    silence = 10.0


@pytest.mark.slow  # takes half a minute, because each test waits until a silence is noticed
def test_broken_coordinators_are_caught(assert_each_is_caught):
    assert_each_is_caught("coordinators")
