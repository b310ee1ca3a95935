"""Splits an element of an input into features, labels and host features, and checks every batch against the first."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from estimator_core._inputs.leaves import (
    as_array,
    converter,
    host_names,
    is_text_list,
    leaf_names,
    settled_dtype,
    stays_on_host,
    without_host,
)
from estimator_core._types import PyTree
from estimator_core.errors import InputError


class Parts(NamedTuple):
    """A batch without its position."""

    features: PyTree
    labels: PyTree
    host: Mapping[str, np.ndarray]
    rows: int


class _Leaf(NamedTuple):
    """The requirements on every batch at one place of the tree."""

    dtype: np.dtype
    trailing: tuple[int, ...] | None  # None: one value for the whole batch, without an example axis

    @property
    def shape(self) -> str:
        return "()" if self.trailing is None else f"({', '.join(['batch', *map(str, self.trailing)])})"


class _Recipe(NamedTuple):
    """The way to process batches of one exact signature (array types, dtypes, shapes)."""

    signature: list[tuple[type, Any, Any]]
    rows: int
    converters: tuple[Callable[[PyTree], np.ndarray] | None, ...] | None
    host: tuple[int, ...]


NO_HOST: Mapping[str, np.ndarray] = {}
_Converters = Sequence[Callable[[PyTree], np.ndarray] | None] | None
_Quick = Callable[[PyTree], tuple[PyTree, PyTree] | None]
#: Returns the model_fn argument for a part like the previous one, and `_OTHER` for any other part.
_Take = Callable[[Any], Any]
_OTHER = object()
_new = tuple.__new__  # half the time of calling the class


class Normaliser:
    """A callable that converts an element of an input to `Parts`.

    It compares the array types, dtypes and shapes of a batch with those of the last batch. If arrays and dicts are
    alike, this costs half a microsecond, plus the copies.

    Args:
        fresh_arrays: whether the input never writes again into an array that it yielded. Otherwise every array is
            copied, because `jax.device_put` aliases aligned host memory on CPU.
        with_labels: whether to keep labels. False for predict.
        varying_shapes: whether sizes other than the batch size may change. The number of axes may not.

    Example:
        >>> normalise = Normaliser(fresh_arrays=True)
        >>> parts = normalise(({"x": np.ones((2, 3), np.float64), "name": np.array(["a", "b"])}, np.array([0, 1])))
        >>> parts.features["x"].dtype.name, parts.labels.dtype.name, list(parts.host), parts.rows
        ('float32', 'int32', ['name'], 2)
    """

    def __init__(self, *, fresh_arrays: bool, with_labels: bool = True, varying_shapes: bool = False) -> None:
        self._copy = not fresh_arrays
        self._with_labels = with_labels
        self._varying_shapes = varying_shapes
        self._treedef: Any = jax.tree_util.tree_structure(())  # differs from the structure of any pair
        self._is_leaf: Callable[[object], bool] | None = None  # set if lists of strings are features
        self._names: list[str] = []
        self._keys: list[str] = []
        self._leaves: list[_Leaf] = []
        self._recipe: _Recipe | None = None
        #: Returns the pair that enters model_fn for an element that is like the previous one and has `rows` examples,
        #: and None for any other element. The attribute is None if only a call can decide. Most runs have such batches,
        #: and this is their host cost.
        self.quick: _Quick | None = None
        self.rows = 0

    def __call__(self, element: PyTree) -> Parts:
        """Checks and splits one element.

        Raises:
            InputError: the element differs from the first one, or its contents are not allowed in a batch.
        """
        pair = None if self.quick is None else self.quick(element)
        if pair is not None:
            return _new(Parts, (*pair, NO_HOST, self.rows))
        features, labels = split_element(element)
        if not self._with_labels:
            labels = None
        leaves, treedef = jax.tree_util.tree_flatten((features, labels), self._is_leaf)
        if treedef != self._treedef:
            leaves, treedef = self._check_structure(features, labels, leaves, treedef)
        recipe = self._recipe
        try:
            signature = [(type(leaf), leaf.dtype, leaf.shape) for leaf in leaves]
        except AttributeError:
            leaves = [as_array(leaf, name) for leaf, name in zip(leaves, self._names, strict=True)]
            signature = [(type(leaf), leaf.dtype, leaf.shape) for leaf in leaves]
        if recipe is None or signature != recipe.signature:
            recipe = self._recipe = self._examine(leaves, signature)
            self.quick = None if recipe.host else _quick(features, labels, recipe.converters, self._with_labels)
            self.rows = recipe.rows
        if recipe.converters is not None:
            leaves = [
                leaf if convert is None else convert(leaf)
                for leaf, convert in zip(leaves, recipe.converters, strict=True)
            ]
        features, labels = treedef.unflatten(leaves)  # dicts with sorted keys, as in every other batch
        if not recipe.host:
            return Parts(features, labels, NO_HOST, recipe.rows)
        host = {self._keys[index]: leaves[index] for index in recipe.host}
        features, labels = without_host(features), without_host(labels)
        return Parts({} if features is None else features, labels, host, recipe.rows)

    def _check_structure(
        self, features: PyTree, labels: PyTree, leaves: list[PyTree], treedef: object
    ) -> tuple[list[PyTree], Any]:
        if not self._names and any(isinstance(leaf, (str, bytes)) for leaf in leaves):
            self._is_leaf = is_text_list
            leaves, treedef = jax.tree_util.tree_flatten((features, labels), is_text_list)
        names = leaf_names(features, labels, self._is_leaf)
        if not names:
            raise InputError("A batch holds no arrays: yield (features, labels) with at least one feature.")
        if not self._names:
            self._treedef, self._names, self._keys = treedef, names, host_names(features, labels, self._is_leaf)
        if treedef == self._treedef:
            return leaves, treedef
        gone, new = [n for n in self._names if n not in names], [n for n in names if n not in self._names]
        what = "; ".join(
            [f"{', '.join(gone)} missing"] * bool(gone)
            + [f"{', '.join(new)} new"] * bool(new)
            + [f"it was {self._treedef} and is {treedef}"] * (not gone and not new)
        )
        raise InputError(
            f"The structure of the batches changed: {what}. Every batch must have the same features and labels as the "
            "first: fill what is missing in the input."
        )

    def _examine(self, leaves: list[PyTree], signature: list[tuple[type, Any, Any]]) -> _Recipe:
        arrays = [as_array(leaf, name) for leaf, name in zip(leaves, self._names, strict=True)]
        rows = self._rows(arrays)
        found = [_Leaf(settled_dtype(a.dtype), a.shape[1:] if a.ndim else None) for a in arrays]
        if not self._leaves:
            self._leaves = found
        for name, first, now in zip(self._names, self._leaves, found, strict=True):
            if now.dtype != first.dtype:
                raise InputError(
                    f"The dtype of {name} changed between batches: it was {first.dtype} {first.shape} and is "
                    f"{now.dtype} {now.shape}. Cast it in the input."
                )
            if now.trailing != first.trailing and first.dtype.kind != "O" and not self._may_vary(first, now):
                raise InputError(
                    f"The shape of {name} changed between batches: it was {first.shape} and is {now.shape}. Only the "
                    "batch axis may vary: pad or crop to one shape in the input."
                )
        host = tuple(i for i, array in enumerate(arrays) if stays_on_host(array.dtype))
        converters = tuple(
            converter(type(leaf), array.dtype, name, copy=self._copy)
            for leaf, array, name in zip(leaves, arrays, self._names, strict=True)
        )
        plain = not host and all(convert is None for convert in converters)
        return _Recipe(signature, rows, None if plain else converters, host)

    def _may_vary(self, first: _Leaf, now: _Leaf) -> bool:
        return (
            self._varying_shapes
            and first.trailing is not None
            and now.trailing is not None
            and len(first.trailing) == len(now.trailing)
        )

    def _rows(self, arrays: list[np.ndarray]) -> int:
        counted = [(name, len(array)) for name, array in zip(self._names, arrays, strict=True) if array.ndim]
        if not counted:
            raise InputError(
                f"A batch has no example axis: {self._names[0]} is a single value. Batch the data set first, so that "
                "the first axis of every array is the example."
            )
        first_name, rows = counted[0]
        for name, count in counted[1:]:
            if count != rows:
                raise InputError(
                    f"A batch has {rows} examples in {first_name} and {count} in {name}. The first axis of every array "
                    "is the example: make them equally long."
                )
        if rows == 0:
            raise InputError("A batch has no examples (its arrays have length 0). Leave such batches out of the input.")
        return rows


def _quick(features: PyTree, labels: PyTree, converters: _Converters, with_labels: bool) -> _Quick | None:
    """Returns a function for elements with such parts; None if they contain more than arrays and dicts.

    Two arrays are compared without a call for each.
    """
    following = itertools.repeat(None) if converters is None else iter(converters)
    of_features, of_labels = _take(features, following), _take(labels, following)
    if of_features is None or of_labels is None:
        return None

    def parts(element: PyTree) -> tuple[PyTree, PyTree] | None:
        features, labels = element, None
        if element.__class__ is tuple:
            if len(element) != 2:
                return None
            features, labels = element
        features = of_features(features)
        if features is _OTHER:
            return None
        labels = of_labels(labels if with_labels else None)
        return None if labels is _OTHER else (features, labels)

    if type(features) is not np.ndarray or type(labels) is not np.ndarray:
        return parts
    array, x_dtype, x_shape, y_dtype, y_shape = np.ndarray, features.dtype, features.shape, labels.dtype, labels.shape
    of_x, of_y = converters or (None, None)

    def arrays(element: PyTree) -> tuple[PyTree, PyTree] | None:
        if element.__class__ is not tuple or len(element) != 2:
            return None
        x, y = element
        if (
            x.__class__ is not array
            or y.__class__ is not array
            or x.dtype is not x_dtype
            or y.dtype is not y_dtype
            or x.shape != x_shape
            or y.shape != y_shape
        ):
            return None
        return x if of_x is None else of_x(x), y if of_y is None else of_y(y)

    return arrays


def _take(value: object, converters: Iterator[_Take | None]) -> _Take | None:
    """Returns a function for parts like this one.

    It uses up the converters of its arrays, in the order of jax.tree.leaves.
    """
    if value is None:
        return lambda other: None if other is None else _OTHER
    if type(value) is np.ndarray:
        array, dtype, shape, convert = np.ndarray, value.dtype, value.shape, next(converters)
        if convert is None:
            return lambda other: (
                other if other.__class__ is array and other.dtype is dtype and other.shape == shape else _OTHER
            )
        return lambda other: (
            convert(other) if other.__class__ is array and other.dtype is dtype and other.shape == shape else _OTHER
        )
    if type(value) is not dict:
        return None
    parts: dict[Any, Any] = value
    takes = {name: _take(parts[name], converters) for name in sorted(parts)}
    return None if None in takes.values() else _take_dict(takes)  # type: ignore[arg-type]


def _take_dict(takes: Mapping[Any, _Take]) -> _Take:
    items, count = list(takes.items()), len(takes)

    def take(other: Any) -> Any:
        if other.__class__ is not dict or len(other) != count:
            return _OTHER
        taken: dict[Any, Any] = {}
        for name, of_part in items:
            part = of_part(other.get(name, _OTHER))
            if part is _OTHER:
                return _OTHER
            taken[name] = part
        return taken

    return take


def split_element(element: PyTree) -> tuple[PyTree, PyTree]:
    """`(features, labels)` of an element: a tuple or list of length 2 is the pair, anything else is features.

    Raises:
        InputError: the element is a tuple or list of another length.

    Example:
        >>> split_element({"a": 1, "b": 2})
        ({'a': 1, 'b': 2}, None)
    """
    if isinstance(element, (tuple, list)):
        pair: tuple[Any, ...] | list[Any] = element
        if len(pair) != 2:
            cure = "put further arrays (weights, ids) into a dict of features"
            if len(pair) == 1:
                cure = "without labels, return features without a tuple or list around them"
            raise InputError(
                "input_fn should return (features, labels) as a len 2 tuple. A batch of "
                f"{len(pair)} item{'s' * (len(pair) != 1)} was drawn: {cure}."
            )
        return pair[0], pair[1]
    return element, None
