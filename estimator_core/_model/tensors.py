"""Values that leave model_fn by name: `ec.tensor` and the functions of `ec.summary`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from estimator_core._model.scope import Output, active_scope
from estimator_core.errors import ModelFnError


def tensor(name: str, value: object) -> jax.Array:
    """Names an array, so that hooks can request it.

    Args:
        name: the name of the array. The current variable scope is its prefix.
        value: an array.

    Returns:
        The array.

    Raises:
        ModelFnError: the call is outside model_fn or inside scan, cond, vmap or grad, or the name is taken.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     hidden = tensor("hidden", jnp.tanh(features))
    """
    array = _as_array("ec.tensor", name, value)
    _add("ec.tensor", name, Output("tensor", array))
    return array


def scalar(name: str, value: object) -> None:
    """Adds a number to the outputs of the step and to the event file.

    Args:
        name: the tag of the number. The current variable scope is its prefix.
        value: a number, an array of one element.

    Raises:
        ModelFnError: the call is outside model_fn or inside scan, cond, vmap or grad, the name is taken, or the array
            has more than one element.

    Example:
        >>> def model_fn(features, labels, mode):
        ...     scalar("mean_feature", features.mean())

    Source: `tf.compat.v1.summary.scalar`.
    """
    array = _as_array("ec.summary.scalar", name, value)
    if array.size != 1:
        raise ModelFnError(
            f"ec.summary.scalar({name!r}): the value has shape {array.shape}. Reduce it (jnp.mean), or use "
            "ec.summary.histogram."
        )
    _add("ec.summary.scalar", name, Output("scalar", array.reshape(())))


def histogram(name: str, values: object) -> None:
    """Adds an array to the outputs of the step, and its distribution to the event file.

    Args:
        name: the tag of the array. The current variable scope is its prefix.
        values: an array of numbers, of any shape.

    Raises:
        ModelFnError: see `scalar`.

    Source: `tf.compat.v1.summary.histogram`.
    """
    _add("ec.summary.histogram", name, Output("histogram", _as_array("ec.summary.histogram", name, values)))


def image(name: str, images: object, max_outputs: int = 3) -> None:
    """Adds images to the outputs of the step and to the event file.

    Args:
        name: the tag of the images. The current variable scope is its prefix.
        images: `[height, width, channels]` or `[batch, height, width, channels]`, uint8 or floats in [0, 1]; 1, 3 or 4
            channels.
        max_outputs: the largest number of images per batch.

    Raises:
        ModelFnError: see `scalar`, or the shape is not that of images.

    Source: `tf.compat.v1.summary.image`.
    """
    array = _as_array("ec.summary.image", name, images)
    if array.ndim not in (3, 4) or array.shape[-1] not in (1, 3, 4):
        raise ModelFnError(
            f"ec.summary.image({name!r}): the value has shape {array.shape}. Images are [height, width, channels] or "
            "[batch, height, width, channels] with 1, 3 or 4 channels."
        )
    batch = array if array.ndim == 4 else array[None]
    _add("ec.summary.image", name, Output("image", batch[:max_outputs]))


def text(name: str, value: str) -> None:
    """Adds a text to the event file. It cannot depend on the batch, because model_fn does not receive strings.

    Args:
        name: the tag of the text. The current variable scope is its prefix.
        value: the text.

    Raises:
        ModelFnError: see `scalar`, or the value is not a string.

    Source: `tf.compat.v1.summary.text`.
    """
    if not isinstance(value, str):
        raise ModelFnError(
            f"ec.summary.text({name!r}): the value is of type {type(value).__name__}. Give a Python string; for "
            "numbers use ec.summary.scalar."
        )
    _add("ec.summary.text", name, Output("text", value))


def _add(function: str, name: str, output: Output) -> None:
    scope = active_scope(function)
    scope.add_output(scope.path(name), output)


def _as_array(function: str, name: str, value: object) -> jax.Array:
    active_scope(function)
    try:
        return jnp.asarray(value)
    except TypeError as error:
        raise ModelFnError(
            f"{function}({name!r}): the value is of type {type(value).__name__}, not an array of numbers."
        ) from error
