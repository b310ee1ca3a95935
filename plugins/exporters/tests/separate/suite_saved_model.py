"""The `saved_model` format, in an environment with TensorFlow."""

from estimator_core.testing import ExportFormatSuite
from estimator_exporters.saved_model import SavedModelFormat


class TestSavedModel(ExportFormatSuite):
    def make(self):
        return SavedModelFormat()
