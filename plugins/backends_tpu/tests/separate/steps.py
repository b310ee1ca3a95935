"""The training steps that are compiled for slices: those of the digits example and of BERT-base."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_backends_tpu import TPUBackend
from estimator_core.inputs import Batch, InputPosition
from estimator_plan import TrainingPlan, find_topology, plan_training

EXAMPLES = Path(__file__).parents[4] / "examples"
BATCH = {"digits": 1024, "bert_base": 256}
LENGTH = 128


def planned(model: str, topology: str, *, sharded: bool = True, batch_size: int | None = None) -> TrainingPlan:
    """Returns the plan of a model for a slice, which is made once."""
    return _planned(model, topology, sharded, batch_size or BATCH[model])


@cache
def _planned(model: str, topology: str, sharded: bool, batch_size: int) -> TrainingPlan:
    model_fn, params, batch = _MODELS[model]()
    estimator = ec.Estimator(model_fn, config=ec.RunConfig(default_hooks=False), params=params)
    found = find_topology(topology, lambda name: TPUBackend, ["tpu"])
    rules = [(".*", ec.FullySharded())] if sharded else []
    return plan_training(estimator, batch, found, partition_rules=rules, batch_size=batch_size)


def _digits() -> tuple[Callable[..., Any], Any, Batch]:
    sys.path.insert(0, str(EXAMPLES))
    import digits_convnet

    return digits_convnet.model_fn, digits_convnet.HPARAMS, _batch({"image": np.zeros((8, 8, 8, 1), np.float32)})


def _bert_base() -> tuple[Callable[..., Any], Any, Batch]:
    from estimator_canned_bert import BertConfig, bert_model_fn_builder

    features = {name: np.zeros((8, LENGTH), np.int32) for name in ("input_ids", "input_mask", "segment_ids")}
    return bert_model_fn_builder(BertConfig(), scan_layers=True), None, _batch(features)


def _batch(features: dict[str, np.ndarray]) -> Batch:
    return Batch(features, np.zeros(8, np.int32), {}, 8, InputPosition("zeros", 0, 0, False, None))


_MODELS = {"digits": _digits, "bert_base": _bert_base}
