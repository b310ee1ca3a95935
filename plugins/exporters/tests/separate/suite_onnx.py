"""The `onnx` format, in an environment with jax2onnx and onnxruntime."""

from estimator_core.testing import ExportFormatSuite
from estimator_exporters.onnx import OnnxFormat


class TestOnnx(ExportFormatSuite):
    def make(self):
        return OnnxFormat()
