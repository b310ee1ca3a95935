"""The parts of the ported bert_tpu.py that are compared."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "ported"))
import bert_tpu

import estimator_core as ec


def tickets(model_dir):
    model_fn = bert_tpu.model_fn_builder(None, 3e-5, 150, 15, dropout_rate=0.0)
    return {"estimator": ec.Estimator(model_fn, config=ec.RunConfig(model_dir=model_dir, tf_random_seed=11))}
