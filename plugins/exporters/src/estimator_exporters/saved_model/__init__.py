"""The `saved_model` format: a TensorFlow SavedModel."""

from estimator_exporters.saved_model.format import SavedModelFormat as SavedModelFormat
