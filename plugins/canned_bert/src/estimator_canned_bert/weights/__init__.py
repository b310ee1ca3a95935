"""The reader and writer of weights: Hugging Face directories, TensorFlow checkpoints, checkpoints of this project."""

from estimator_canned_bert.weights.hugging_face import save_pretrained
from estimator_canned_bert.weights.initial import init_from_pretrained
from estimator_canned_bert.weights.read import get_assignment_map_from_checkpoint, read_checkpoint

__all__ = ["get_assignment_map_from_checkpoint", "init_from_pretrained", "read_checkpoint", "save_pretrained"]
