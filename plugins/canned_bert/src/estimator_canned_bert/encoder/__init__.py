"""The encoder of BERT and ALBERT as pure functions of a dictionary of parameters with the names of google-research."""

from estimator_canned_bert.encoder.apply import Encoded, EncoderOptions, encode
from estimator_canned_bert.encoder.parameters import Parameters, encoder_shapes, layer_prefix

__all__ = ["Encoded", "EncoderOptions", "Parameters", "encode", "encoder_shapes", "layer_prefix"]
