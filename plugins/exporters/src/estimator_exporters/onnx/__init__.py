"""The format `onnx`, which writes ONNX graphs."""

from estimator_exporters.onnx.format import OnnxFormat as OnnxFormat
