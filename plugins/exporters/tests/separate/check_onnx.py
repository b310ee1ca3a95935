"""The `onnx` format, in an environment with jax2onnx and onnxruntime."""

from estimator_exporters.onnx import OnnxFormat

from estimator_core.testing import ExportFormatSuite


class TestOnnx(ExportFormatSuite):
    def make(self):
        return OnnxFormat()
