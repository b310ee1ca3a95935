"""The optimizer of BERT: AdamW with warm-up and linear decay, and the extensions for fine-tuning."""

from estimator_canned_bert.optimization.adam import scale_by_bert_adam
from estimator_canned_bert.optimization.create import Optimization, create_optimizer
from estimator_canned_bert.optimization.groups import decays, layer_scales, trainable_pattern
from estimator_canned_bert.optimization.schedule import warmup_linear_decay

__all__ = [
    "Optimization",
    "create_optimizer",
    "decays",
    "layer_scales",
    "scale_by_bert_adam",
    "trainable_pattern",
    "warmup_linear_decay",
]
