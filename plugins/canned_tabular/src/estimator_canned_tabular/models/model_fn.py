"""The common part of the model_fns of this package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import estimator_core as ec
from estimator_canned_tabular.host.plan import FeaturePlan
from estimator_canned_tabular.optimizers import ChosenOptimizer
from estimator_core.errors import ArgumentTypeError
from estimator_heads import HeadContract

#: A function `(features, labels, mode) -> EstimatorSpec`.
ModelFn = Callable[[Any, Any, str], ec.EstimatorSpec]


def plan_of(head: Any, columns: Iterable[Any], keep: Iterable[str] = ()) -> FeaturePlan:
    """Returns the plan of columns for a head. The weights of the head stay on the device, even if columns read them."""
    return FeaturePlan.of(columns, keep=(*keep, *_weights_of(head)))


def head_model_fn(
    head: Any, plan: FeaturePlan, logits_of: Callable[[Mapping[str, Any], str], Any], train_op_fn: Callable[[Any], Any]
) -> ModelFn:
    """Returns a model_fn with its host transforms.

    Args:
        head: computes loss, predictions, metrics and signatures.
        plan: the host part and the device part of the columns.
        logits_of: a function that returns the logits of features, by mode.
        train_op_fn: a function that returns the train_op of a loss.
    """
    contract = contract_of(head, plan)

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        if not isinstance(features, Mapping):
            raise ArgumentTypeError(f"features should be a dictionary of `Tensor`s. Given type: {type(features)}")
        logits = logits_of(plan.with_fills(features, contract.known), mode)
        contract.declare()
        return contract.head.create_estimator_spec(features, mode, logits, labels=labels, train_op_fn=train_op_fn)

    return with_host_parts(model_fn, plan, contract)


def contract_of(head: Any, plan: FeaturePlan) -> HeadContract:
    """Returns the requirements of the head and the columns on the data."""
    weights = _weights_of(head)
    words = {key: replace(rule, weighs=key in weights) for key, rule in plan.word_rules().items()}
    return HeadContract(head, {**plan.rules(), **words}, lambda known: plan.checks(), plan.vocabularies)


def with_host_parts(model_fn: ModelFn, plan: FeaturePlan, contract: HeadContract) -> ModelFn:
    """Returns the model_fn with its contract and the host transforms of its columns as attributes."""
    model_fn.host_transforms = plan.transforms()  # type: ignore[attr-defined]
    model_fn.label_transforms = contract.label_transforms  # type: ignore[attr-defined]
    model_fn.data_contract = contract  # type: ignore[attr-defined]
    return model_fn


def train_everything(chosen: ChosenOptimizer) -> Callable[[Any], Any]:
    """Returns a train_op_fn that applies one optimizer to all variables."""
    return lambda loss: chosen.transformation


def _weights_of(head: Any) -> Mapping[str, Any]:
    """Returns the rules of the weight features of a head. A head of another package may have none."""
    rules: Mapping[str, Any] = getattr(head, "weight_rules", dict)()
    return rules
