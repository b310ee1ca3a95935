"""A model_fn that fine-tunes BERT or ALBERT on sentences and pairs of sentences."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

import estimator_core as ec
from estimator_canned_bert.config import BertConfig
from estimator_canned_bert.encoder.apply import EncoderOptions, encode
from estimator_canned_bert.encoder.attention import Implementation
from estimator_canned_bert.encoder.layers import dropout
from estimator_canned_bert.encoder.variables import OUTPUT_BIAS, OUTPUT_WEIGHTS, declare_encoder, declare_output
from estimator_canned_bert.features import read_features
from estimator_canned_bert.lora import TRAINABLE, LoraConfig, declare_lora
from estimator_canned_bert.optimization.averaging import averaged
from estimator_canned_bert.optimization.create import Optimization, create_optimizer
from estimator_canned_bert.optimization.groups import trainable_pattern
from estimator_canned_bert.tasks import Classification, Regression, Task
from estimator_canned_bert.weights.initial import init_from_pretrained
from estimator_core.errors import ArgumentError

_DTYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}


def bert_model_fn_builder(
    config: BertConfig,
    num_labels: int = 2,
    init_checkpoint: str | os.PathLike[str] | None = None,
    learning_rate: float | Callable[[Any], Any] = 2e-5,
    num_train_steps: int | None = None,
    num_warmup_steps: int = 0,
    *,
    regression: bool = False,
    label_names: Sequence[str] | None = None,
    class_weights: Sequence[float] | None = None,
    optimization: Optimization | None = None,
    lora: LoraConfig | None = None,
    head: Any = None,
    compute_dtype: str | None = None,
    remat: bool = False,
    scan_layers: bool = False,
    attention: str = "auto",
) -> Callable[..., ec.EstimatorSpec]:
    """Returns a model_fn for features `input_ids`, `input_mask`, `segment_ids` (int [batch, length]).

    Predictions are `probabilities`, `predictions` (class ids) and `logits`. For regression, they are `predictions`
    (numbers).

    Args:
        config: the shape of the encoder.
        num_labels: the number of classes.
        init_checkpoint: pretrained weights in any format of `read_checkpoint`. None: training from scratch.
        learning_rate: the highest learning rate between warm-up and linear decay, or a schedule (a function of the
            step).
        num_train_steps: the step at which the rate reaches zero. None: it stays constant.
        num_warmup_steps: the number of warm-up steps.
        regression: whether to predict one number per example instead of classes.
        label_names: the class names, which exports return instead of ids.
        class_weights: the weight in the loss of the examples of each class.
        optimization: the other settings of the optimizer.
        lora: the low-rank additions to train instead of the encoder.
        head: an `ec.Head` for `num_labels` logits, which computes loss, predictions, metrics and signatures.
        compute_dtype: "float32" or "bfloat16". None: the `precision` of the RunConfig.
        remat: whether to recompute layers in the backward pass to save memory.
        scan_layers: whether to compile one layer instead of all.
        attention: "xla", "cudnn" or "auto", which uses cuDNN if a GPU trains or evaluates in bfloat16. Prediction
            always uses the portable implementation, because exports contain it.

    Raises:
        ArgumentError: an argument cannot be used.

    Example:
        >>> model_fn = bert_model_fn_builder(BertConfig.of_size("tiny"), num_labels=3, learning_rate=1e-4)
        >>> estimator = ec.Estimator(model_fn, config=ec.RunConfig(tf_random_seed=1))

    Source: `run_classifier.model_fn_builder` of google-research/bert.
    """
    options = optimization or Optimization()
    task: Task = _task(num_labels, regression, label_names, class_weights)
    if head is not None and head.logits_dimension != task.outputs:
        raise ArgumentError(f"head expects {head.logits_dimension} logits, but num_labels asks for {task.outputs}.")
    if compute_dtype is not None and compute_dtype not in _DTYPES:
        raise ArgumentError(f"compute_dtype should be one of {', '.join(_DTYPES)}, given: {compute_dtype!r}.")
    if attention not in ("auto", "xla", "cudnn"):
        raise ArgumentError(f'attention should be "auto", "xla" or "cudnn", given: {attention!r}.')
    pattern = _trainable(config, options, lora)
    # The optimizer is made here, so that a wrong one is refused before any work.
    optimizer = create_optimizer(learning_rate, num_train_steps, num_warmup_steps, config=config, options=options)

    encoder = config

    def model_fn(features: Any, labels: Any, mode: str, config: ec.RunConfig) -> ec.EstimatorSpec:
        training = mode == ec.ModeKeys.TRAIN
        text = read_features(features, encoder, config.accumulate_steps if training else 1)
        parameters = declare_encoder(encoder) | declare_output(encoder, task.outputs)
        additions = {} if lora is None else declare_lora(encoder, lora)
        if init_checkpoint is not None:
            init_from_pretrained(init_checkpoint)
        parameters |= additions
        if options.ema_decay is not None:
            parameters = averaged(parameters, mode, options.ema_decay, updates_per_step=config.accumulate_steps)
        dtype = _DTYPES[compute_dtype or config.precision]
        encoded = encode(
            parameters,
            encoder,
            text.ids,
            text.mask,
            text.segments,
            first_tokens=text.first_tokens,
            key=ec.next_rng_key("dropout") if training else None,
            options=EncoderOptions(
                dtype=dtype,
                remat=remat and training,
                scan_layers=scan_layers,
                attention=_attention(attention, mode, dtype),
            ),
        )
        output_key = ec.next_rng_key("output_dropout") if training else None
        pooled = dropout(encoded.pooled.astype(jnp.float32), encoder.output_dropout, output_key)
        logits = pooled @ parameters[OUTPUT_WEIGHTS].T + parameters[OUTPUT_BIAS]
        if head is not None:
            return _spec_of_head(head, features, mode, logits, labels, optimizer, pattern)
        return _spec(task, mode, logits, labels, optimizer, pattern)

    return model_fn


def _task(
    num_labels: int,
    regression: bool,
    label_names: Sequence[str] | None,
    class_weights: Sequence[float] | None,
) -> Task:
    if not regression:
        return Classification(num_labels, label_names=label_names, class_weights=class_weights)
    if label_names is not None or class_weights is not None:
        raise ArgumentError("regression=True has no classes: leave out label_names and class_weights.")
    return Regression()


def _trainable(config: BertConfig, options: Optimization, lora: LoraConfig | None) -> str:
    if lora is None:
        return trainable_pattern(config, options.frozen, options.frozen_layers)
    if options.frozen is not None or options.frozen_layers != -1:
        raise ArgumentError("With lora the encoder is frozen already: leave out frozen and frozen_layers.")
    return TRAINABLE


def _attention(wanted: str, mode: str, dtype: Any) -> Implementation:
    if mode == ec.ModeKeys.PREDICT:
        return "xla"
    if wanted != "auto":
        return "cudnn" if wanted == "cudnn" else "xla"
    return "cudnn" if dtype == jnp.bfloat16 and jax.default_backend() == "gpu" else "xla"


def _spec(task: Task, mode: str, logits: Any, labels: Any, optimizer: Any, pattern: str) -> ec.EstimatorSpec:
    predictions = task.predictions(logits)
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions=predictions, export_outputs=task.export_outputs(predictions))
    loss = task.loss(logits, labels)
    if mode == ec.ModeKeys.EVAL:
        return ec.EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=task.metrics(logits, labels))
    return ec.EstimatorSpec(mode, loss=loss, train_op=ec.minimize(loss, optimizer, variables=pattern))


def _spec_of_head(
    head: Any, features: Mapping[str, Any], mode: str, logits: Any, labels: Any, optimizer: Any, pattern: str
) -> ec.EstimatorSpec:
    spec = head.create_estimator_spec(features, mode, logits, labels, optimizer=optimizer)
    if mode != ec.ModeKeys.TRAIN:
        return spec
    return spec._replace(train_op=ec.minimize(spec.loss, optimizer, variables=pattern))
