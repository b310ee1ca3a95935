"""The arrays of `numpy_input_fn`: checked, narrowed once, and gathered by rows in a seeded order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from estimator_core._inputs.leaves import as_array, narrow, stays_on_host
from estimator_core.errors import ArgumentError, ArgumentTypeError, InputError


def epoch_order(n: int, *, seed: int, epoch: int) -> np.ndarray:
    """Returns the order of `n` examples in one epoch of a shuffled input: int64[n], a permutation of 0..n-1.

    Example:
        >>> sorted(epoch_order(5, seed=0, epoch=3).tolist())
        [0, 1, 2, 3, 4]
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, epoch)))).permutation(n)


class ExampleOrder:
    """Row numbers of the examples, epoch after epoch.

    Args:
        n: the number of examples of the input.
        seed: the seed of the permutations. None reads in order.

    Example:
        >>> ExampleOrder(3, seed=None).rows(1, 5).tolist()
        [1, 2, 0, 1]
    """

    def __init__(self, n: int, *, seed: int | None) -> None:
        self._n = n
        self._seed = seed
        self._epoch = -1
        self._order: np.ndarray = np.empty(0, np.int64)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Row numbers of examples `start` to `stop`, counted over all epochs; int64[stop - start]."""
        epoch, first = divmod(start, self._n)
        last = first + stop - start
        if last <= self._n:
            return self._of_epoch(epoch)[first:last]
        parts = [self._of_epoch(epoch)[first:]]
        missing = last - self._n
        while missing > 0:
            epoch += 1
            parts.append(self._of_epoch(epoch)[:missing])
            missing -= self._n
        return np.concatenate(parts)

    def contiguous(self, start: int, stop: int) -> slice | None:
        """Returns the same rows as one slice, if the input is read in order and the range is within one epoch; else
        None.
        """
        first = start % self._n
        last = first + stop - start
        return None if self._seed is not None or last > self._n else slice(first, last)

    def _of_epoch(self, epoch: int) -> np.ndarray:
        if epoch != self._epoch:
            whole = np.arange(self._n) if self._seed is None else epoch_order(self._n, seed=self._seed, epoch=epoch)
            self._order, self._epoch = whole, epoch
        return self._order


#: One array, or a dict of arrays.
Arrays = np.ndarray | Mapping[str, np.ndarray]


class ArrayData(NamedTuple):
    """Features and labels of equal length.

    Attributes:
        x: the features, an array or a dict of arrays.
        y: the labels in the same form, or None.
        n: the number of examples.
        summary: the names, dtypes and shapes of one example, for the fingerprint.
        too_wide: the reason why devices cannot represent an array, by its place: 0 for x or 1 for y, and its name (""
            without a name). Such an array does not change, for use by a host transform.
    """

    x: Arrays
    y: Arrays | None
    n: int
    summary: str
    too_wide: Mapping[tuple[int, str], str]

    @classmethod
    def of(cls, x: object, y: object) -> ArrayData:
        """Checks arrays and narrows their dtypes to those of devices.

        Raises:
            ArgumentError: x or y is empty, lengths differ, or a key is both in x and in y.
            ArgumentTypeError: x or y is neither an array nor a dict of arrays.
            InputError: an argument is a table, or has masked values.
        """
        x = _checked("x", x)
        y = None if y is None else _checked("y", y)
        if isinstance(x, dict) and isinstance(y, dict):
            both = x.keys() & y.keys()
            if both:
                raise ArgumentError(
                    f"{len(both)} duplicate keys are found in both x and y: {sorted(both)}. Rename them in one."
                )
        shapes_x, shapes_y = _shapes(x), None if y is None else _shapes(y)
        lengths = {array.shape[0] for array in (*_arrays(x), *(() if y is None else _arrays(y)))}
        if len(lengths) != 1:
            raise ArgumentError(
                "Length of tensors in x and y is mismatched. All elements in x and y must have the same length.\n"
                f"Shapes in x: {shapes_x}\nShapes in y: {shapes_y}\n"
            )
        n = lengths.pop()
        if n == 0:
            raise ArgumentError(f"x cannot be an empty array: it has no examples. Shapes in x: {shapes_x}")
        wide: dict[tuple[int, str], str] = {}
        x, y = _narrowed(x, 0, wide), None if y is None else _narrowed(y, 1, wide)
        summary = " ".join([_summary("x", x)] + ([] if y is None else [_summary("y", y)]))
        return cls(x, y, n, summary, wide)

    def gatherers(self) -> tuple[Callable[[np.ndarray], Any], Callable[[slice], Any]]:
        """Returns two functions that copy the rows of a batch: by row numbers, and by a slice.

        They return `(features, labels)`, or only features without labels.
        """
        return _gatherer(self.x, self.y, _take), _gatherer(self.x, self.y, _cut)


def load_arrays(loader: Callable[[], Any]) -> ArrayData:
    """Calls a lazy loader, which returns `x` or `(x, y)`."""
    loaded = loader()
    if isinstance(loaded, tuple):
        pair: tuple[Any, ...] = loaded
        if len(pair) != 2:
            raise ArgumentError(f"The function given as x must return x or (x, y); it returned a tuple of {len(pair)}.")
        return ArrayData.of(*pair)
    return ArrayData.of(loaded, None)


def _take(array: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    # take is three times faster than array[rows] for rows of several values, and slower for single values.
    if isinstance(array, np.memmap) or array.ndim == 1:
        return lambda rows: np.asarray(array[rows])
    return lambda rows: array.take(rows, 0)


def _cut(array: np.ndarray) -> Callable[[slice], np.ndarray]:
    if type(array) is np.ndarray:
        return lambda piece: array[piece].copy()  # half the time of np.array for a few rows
    return lambda piece: np.array(array[piece])


def _gatherer(
    x: Arrays, y: Arrays | None, of: Callable[[np.ndarray], Callable[[Any], np.ndarray]]
) -> Callable[[Any], Any]:
    features = _tree_gatherer(x, of)
    if y is None:
        return features
    labels = _tree_gatherer(y, of)
    return lambda rows: (features(rows), labels(rows))


def _tree_gatherer(tree: Arrays, of: Callable[[np.ndarray], Callable[[Any], np.ndarray]]) -> Callable[[Any], Any]:
    if isinstance(tree, np.ndarray):
        return of(tree)
    gathers = {name: of(array) for name, array in tree.items()}
    return lambda rows: {name: gather(rows) for name, gather in gathers.items()}


def _checked(argument: str, tree: object) -> Arrays:
    if isinstance(tree, Mapping):
        items: Mapping[Any, Any] = tree
        if not items:
            raise ArgumentError(
                "x cannot be an empty dict" if argument == "x" else "y cannot be empty dict, use None instead."
            )
        names = [str(name) for name in items]
        if len(set(names)) < len(names):
            raise ArgumentError(f"{argument} has two arrays with the same name: {names}. Names are compared as text.")
        return {str(name): _checked_array(f"{argument}[{name!r}]", array) for name, array in items.items()}
    return _checked_array(argument, tree)


def _checked_array(argument: str, array: object) -> np.ndarray:
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        if isinstance(array, (str, bytes)) or not hasattr(array, "__array__"):
            raise ArgumentTypeError(
                f"{argument} must be a dict or array; got {type(array).__name__}. Its first axis must be the example: "
                "np.asarray(values), or of lists that differ in length a = np.empty(len(lists), object); a[:] = lists."
            )
        array = as_array(array, argument)
    if array.ndim == 0:
        raise ArgumentError(f"{argument} has no example axis: its shape is (). The first axis must be the example.")
    return array


def _narrowed(tree: Arrays, part: int, wide: dict[tuple[int, str], str]) -> Arrays:
    kind = ("feature", "label")[part]

    def narrowed(array: np.ndarray, name: str, told: str) -> np.ndarray:
        # A memory-mapped array may be larger than memory, so its batches are narrowed one by one as they are drawn.
        if isinstance(array, np.memmap):
            return array
        try:
            return narrow(array, told)
        except InputError as error:
            wide[part, name] = str(error)
            return array

    if isinstance(tree, np.ndarray):
        return narrowed(tree, "", f"{kind}s")
    return {name: narrowed(array, name, f"{kind} '{name}'") for name, array in tree.items()}


def _arrays(tree: Arrays) -> list[np.ndarray]:
    return [tree] if isinstance(tree, np.ndarray) else list(tree.values())


def _shapes(tree: Arrays) -> Any:
    return tree.shape if isinstance(tree, np.ndarray) else {name: array.shape for name, array in tree.items()}


def _summary(argument: str, tree: Arrays) -> str:
    named = (
        {argument: tree}
        if isinstance(tree, np.ndarray)
        else {f"{argument}.{name}": a for name, a in sorted(tree.items())}
    )
    return " ".join(
        f"{name}:{'host' if stays_on_host(a.dtype) else a.dtype.name}{list(a.shape[1:])}" for name, a in named.items()
    ).replace("; ", "_")
