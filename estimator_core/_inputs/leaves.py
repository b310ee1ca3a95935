"""Single arrays of a batch: which are sent to a device, which stay on the host, and how 64-bit numbers are narrowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import jax
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path

from estimator_core._types import PyTree
from estimator_core.errors import InputError

#: dtypes that JAX narrows unless jax_enable_x64 is set. They are narrowed and checked here, because JAX silently wraps
#: integers.
_NARROW: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.longdouble): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
}


def stays_on_host(dtype: np.dtype) -> bool:
    """Returns whether arrays of this dtype are host features: strings, bytes, objects, dates, records."""
    return dtype.kind in "OUSTMm" or dtype.type is np.void


def device_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the dtype of these numbers on a device: in native byte order, 32 bits wide unless jax_enable_x64 is
    set. Strings of numpy's StringDType become objects.
    """
    wide: bool = cast(Any, jax.config).jax_enable_x64
    native = np.dtype(object) if dtype.kind == "T" else dtype if dtype.isnative else dtype.newbyteorder("=")
    return native if wide else _NARROW.get(native, native)


def settled_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the dtype for comparisons of batches, the same for all host features, since strings vary in width."""
    return np.dtype(object) if stays_on_host(dtype) else device_dtype(dtype)


def narrow(array: np.ndarray, name: str) -> np.ndarray:
    """`array` with its device dtype: the array itself if it has that dtype, otherwise a copy.

    Raises:
        InputError: a number is outside the narrower range.
    """
    dtype = device_dtype(array.dtype)
    return array if dtype == array.dtype else _narrowed(array, dtype, name)


def _narrowed(array: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
    if dtype.kind not in "iu":
        try:
            with np.errstate(over="raise"):  # to detect a finite number that becomes infinite
                return array.astype(dtype)
        except FloatingPointError:
            raise _infinite(array, dtype, name) from None
    narrowed = array.astype(dtype)
    if np.count_nonzero(narrowed != array):  # takes a third of the time of `all`
        limits = np.iinfo(dtype)
        wrong = array[(array < limits.min) | (array > limits.max)]
        raise InputError(
            f"{name} holds {wrong.flat[0]}, outside the range of {dtype} ({limits.min} to {limits.max}), and JAX would "
            "silently wrap it. Cast a quantity to a float. Map ids to a smaller range (a vocabulary, a hash), pass "
            "them as strings, which stay on the host, or set jax_enable_x64. A host transform may also consume them."
        )
    return narrowed


def _infinite(array: np.ndarray, dtype: np.dtype, name: str) -> InputError:
    with np.errstate(over="ignore"):
        lost = np.isfinite(array) & ~np.isfinite(array.astype(dtype))
    place = f" in row {np.argwhere(lost)[0, 0]}" if array.ndim else ""
    return InputError(
        f"{name} holds {array[lost][0]}{place}, which is infinite as {dtype}. Correct it, scale it, take its "
        "logarithm, or set jax_enable_x64. A host transform may do so."
    )


def as_array(leaf: object, name: str) -> np.ndarray:
    """Converts a leaf of a foreign batch (a tensor of any library on the CPU, a Series, a numpy scalar) to a numpy
    array.

    Raises:
        InputError: the leaf is not an array, is a table, or has masked values. Or it has missing values, and floats
            cannot represent its integers exactly.
    """
    if hasattr(leaf, "columns"):  # tables of pandas, polars and Arrow
        raise InputError(
            f"{name} is a {type(leaf).__module__}.{type(leaf).__qualname__}, whose columns would become one matrix "
            "without names. Pass a dict of its columns by name, or use pandas_input_fn or table_input_fn."
        )
    if isinstance(leaf, np.ma.MaskedArray) and np.ma.is_masked(leaf):
        raise InputError(f"{name} has masked values, which a batch cannot hold. Fill them first: array.filled(value).")
    if isinstance(leaf, (np.ndarray, np.generic)) or hasattr(leaf, "__array__"):
        try:
            array = np.asarray(leaf)
        except Exception as error:
            raise InputError(
                f"{name} is a {type(leaf).__module__}.{type(leaf).__qualname__} that cannot be converted to a numpy "
                f"array: {str(error).rstrip('.')}. Convert it in the input (a torch tensor: "
                ".detach().cpu().float().numpy())."
            ) from error
        _check_whole_numbers(leaf, array, name)
        return array
    if is_text_list(leaf):
        return np.array(leaf, dtype=object)
    if isinstance(leaf, Mapping):  # such as a batch of transformers
        raise InputError(f"{name} is a {type(leaf).__qualname__}, not a dict of arrays: pass dict(...) of it.")
    raise InputError(
        f"{name} is a Python {type(leaf).__name__} ({leaf!r:.60}), not an array. Batches are numpy arrays whose first "
        "axis is the example: use np.asarray([...]), or batch the data set first."
    )


#: The method of a column that returns it without its missing values, by library.
_KNOWN = {"pandas": "dropna", "polars": "drop_nulls", "pyarrow": "drop_null"}


def _check_whole_numbers(leaf: object, array: np.ndarray, name: str) -> None:
    """Refuses a column whose integers became different numbers, because missing values are NaN."""
    drop = getattr(leaf, _KNOWN.get(type(leaf).__module__.partition(".")[0], ""), None)
    if drop is None or array.dtype.kind != "f":
        return
    numbers = np.asarray(drop())
    if numbers.dtype.kind not in "iu":
        return
    dtype = device_dtype(np.dtype(np.float64))
    large = numbers[(numbers > 2 << np.finfo(dtype).nmant) | (numbers < -(2 << np.finfo(dtype).nmant))]
    wrong = next((number for number in large.tolist() if int(dtype.type(number)) != number), None)
    if wrong is not None:
        raise InputError(
            f"{name} has missing values (NaN), so it becomes {dtype}, which cannot represent {wrong} exactly: "
            "different numbers would become equal. Fill the values, or convert the numbers to strings and hash these."
        )


def is_text_list(tree: PyTree) -> bool:
    """Returns whether this is a list or tuple of strings, as torch's default collate returns a text feature."""
    if not isinstance(tree, (list, tuple)) or not tree:
        return False
    items: list[Any] | tuple[Any, ...] = tree
    return all(isinstance(item, (str, bytes)) for item in items)


def leaf_names(features: PyTree, labels: PyTree, is_leaf: Callable[[object], bool] | None = None) -> list[str]:
    """Returns the name of each leaf of `(features, labels)` in messages, in the order of jax.tree.leaves.

    Example:
        >>> leaf_names({"age": 0, "pixels": (1, 2)}, 3)
        ["feature 'age'", "feature 'pixels/0'", "feature 'pixels/1'", 'labels']
    """
    return [name for name, _ in _named(features, labels, is_leaf)]


def host_names(features: PyTree, labels: PyTree, is_leaf: Callable[[object], bool] | None = None) -> list[str]:
    """Returns the key in `Batch.host` of each leaf of `(features, labels)`.

    Example:
        >>> host_names({"text": 0}, {"word": 1}), host_names(0, 1)
        (['text', 'labels/word'], ['features', 'labels'])
    """
    return [key for _, key in _named(features, labels, is_leaf)]


def _named(features: PyTree, labels: PyTree, is_leaf: Callable[[object], bool] | None) -> list[tuple[str, str]]:
    names: list[tuple[str, str]] = []
    for path, _ in tree_flatten_with_path((features, labels), is_leaf)[0]:
        part = ("features", "labels")[path[0].idx]
        below = keystr(path[1:], simple=True, separator="/")
        key = (below if part == "features" else f"labels/{below}") if below else part
        names.append((f"{part[:-1]} '{below}'" if below else part, key))
    return names


def converter(array_type: type, dtype: np.dtype, name: str, *, copy: bool) -> Callable[[PyTree], np.ndarray] | None:
    """Returns the function that converts leaves of this type and dtype to arrays of the framework; None if they already
    are.

    Args:
        array_type: the type of the leaf.
        dtype: the dtype of the leaf.
        name: the name of the leaf in messages.
        copy: whether to copy the array, because the input may write into it again.
    """
    narrower = device_dtype(dtype)
    if array_type is not np.ndarray:

        def of_foreign(leaf: PyTree) -> np.ndarray:
            array = as_array(leaf, name)
            if settled_dtype(array.dtype) != settled_dtype(dtype):  # missing values change the dtype of a Series
                raise InputError(
                    f"The dtype of {name} changed between batches: as an array it was {dtype} and is {array.dtype}. "
                    "Cast it in the input."
                )
            narrowed = narrow(array, name)
            return np.array(narrowed) if copy and narrowed is array else narrowed

        return of_foreign
    if narrower != dtype:
        return lambda leaf: _narrowed(leaf, narrower, name)
    return np.array if copy else None


def without_host(tree: PyTree) -> PyTree:
    """`tree` without its host leaves; None if it is itself a host leaf."""
    if isinstance(tree, Mapping):
        items: Mapping[str, Any] = tree
        kept = {key: without_host(value) for key, value in items.items()}
        return {key: value for key, value in kept.items() if value is not None or items[key] is None}
    if isinstance(tree, np.ndarray):
        return None if stays_on_host(tree.dtype) else tree
    if any(isinstance(leaf, np.ndarray) and stays_on_host(leaf.dtype) for leaf in jax.tree.leaves(tree)):
        raise InputError(
            f"Strings or objects inside a {type(tree).__name__} cannot be separated from the batch. Put them into a "
            "dict of features, by name."
        )
    return tree
