"""The export-check suite passes sound checks and catches broken ones."""

from estimator_core.export import CloseOutputs
from estimator_core.testing import ExportCheckSuite


class TestTheDefault(ExportCheckSuite):
    def make(self):
        return CloseOutputs()


class TestALooseOne(ExportCheckSuite):
    def make(self):
        return CloseOutputs(tolerance=0.1, narrow={})


def test_broken_checks_are_caught(assert_each_is_caught):
    assert_each_is_caught("export_checks")
