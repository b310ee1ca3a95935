"""A sound head of a few lines. Each broken head differs from it in one method."""

import jax.numpy as jnp
import optax

from estimator_core.errors import ArgumentError
from estimator_core.export import PredictOutput
from estimator_core.metrics import accuracy, example_weights, mean
from estimator_core.specs import EstimatorSpec


class SoundHead:
    """Softmax cross entropy over three classes."""

    logits_dimension = 3

    def __init__(self, name=None):
        self.name = name

    def unreduced_loss(self, labels, logits):
        logits = jnp.asarray(logits)
        if logits.shape[-1] != 3 or len(labels) != logits.shape[0]:
            raise ArgumentError(
                f"logits have shape {logits.shape}, labels {jnp.shape(labels)}; expected [batch, 3], [batch]"
            )
        return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.asarray(labels))

    def loss(self, labels, logits, features=None, mode=None, regularization_losses=None):
        losses = self.unreduced_loss(labels, logits)
        weights = self.weights(features, losses)
        return (losses * weights).sum() / weights.sum() + sum(regularization_losses or [])

    def weights(self, features, losses):
        weights = jnp.ones_like(losses) if features is None or "w" not in features else features["w"]
        mask = example_weights()
        return weights if mask is None else weights * mask

    def predictions(self, logits, keys=None):
        everything = {"class_ids": jnp.argmax(logits, axis=-1), "logits": jnp.asarray(logits)}
        return {key: everything[key] for key in (everything if keys is None else keys)}

    def key(self, key):
        return key if self.name is None else f"{key}/{self.name}"

    def metrics(self, features, logits, labels, mode=None, regularization_losses=None):
        return {
            self.key("accuracy"): accuracy(labels, jnp.argmax(logits, axis=-1)),
            self.key("average_loss"): mean(self.unreduced_loss(labels, logits)),
        }

    def create_estimator_spec(
        self,
        features,
        mode,
        logits,
        labels=None,
        optimizer=None,
        trainable_variables=None,
        train_op_fn=None,
        update_ops=None,
        regularization_losses=None,
    ):
        predictions = self.predictions(logits)
        if mode == "infer":
            return EstimatorSpec(mode, predictions=predictions, export_outputs={"predict": PredictOutput(predictions)})
        loss = self.loss(labels, logits, features, mode, regularization_losses)
        metrics = self.metrics(features, logits, labels, mode) if mode == "eval" else None
        if mode == "train":
            optimizer = train_op_fn(loss) if train_op_fn is not None else optimizer
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=optimizer, eval_metric_ops=metrics)
