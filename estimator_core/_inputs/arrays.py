"""`numpy_input_fn`: seeded batches of arrays in memory, which can be repositioned at any example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from estimator_core._inputs.array_data import ArrayData, Arrays, ExampleOrder, load_arrays
from estimator_core._inputs.contract import InputContext, InputOptions, Ragged, fingerprint_of
from estimator_core._inputs.source import IS_REAL_EXAMPLE
from estimator_core.errors import ArgumentError, check_count


def numpy_input_fn(
    x: Arrays | Callable[[], Any],
    y: Arrays | None = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    *,
    seed: int | None = None,
    drop_remainder: bool = False,
    ragged: Ragged = "exact",
) -> ArrayInput:
    """Returns an input_fn over arrays in memory. Each call returns a new iterator.

    Batches have exactly `batch_size` examples and may span two epochs. Only the last batch of the last epoch may be
    shorter. With `shuffle`, each epoch is a permutation that depends only on (seed, epoch). Several processes share one
    sequence of global batches, with `batch_size` examples per process. Each process reads the rows that its devices
    hold. float64 and 64-bit integer arrays are converted to 32 bits once, in a copy (memory-mapped arrays batch by
    batch). Integers that do not fit keep their dtype, for host transforms such as hashes. If no transform consumes
    them, the first draw raises an error.

    Args:
        x: an array, or a dict of arrays, whose first axis is the example. Or a function without arguments that returns
            `x` or `(x, y)`. It is called at the first draw of each iterator, after `begin` of the hooks.
        y: the labels, an array or a dict of arrays. None without labels.
        batch_size: the number of examples per batch, in each process.
        num_epochs: the number of passes over the data. None repeats forever.
        shuffle: whether to shuffle (required): True for training, False for evaluation and prediction.
        seed: the seed of the permutations. None: `tf_random_seed` of the RunConfig, or 0 if it is not set.
        drop_remainder: whether to drop a short last batch.
        ragged: "exact" yields the short last batch as it is; "pad" fills it up to `batch_size` and marks the rows in
            `Batch.weights`.

    Returns:
        An input_fn. The `examples` of its position count over all processes, so a resumed run may use another batch
        size or number of processes.

    Raises:
        ArgumentError: `shuffle` is not a bool, a size is below 1, x or y is empty, lengths differ, or a key is both in
            x and in y.
        ArgumentTypeError: x or y is neither an array nor a dict of arrays.

    Example:
        >>> import numpy as np
        >>> input_fn = numpy_input_fn({"x": np.arange(5.0)}, np.arange(5), batch_size=2, shuffle=False)
        >>> [labels.tolist() for features, labels in input_fn()]
        [[0, 1], [2, 3], [4]]

    Source: tf.compat.v1.estimator.inputs.numpy_input_fn.
    """
    if not isinstance(shuffle, bool):
        raise ArgumentError(
            "shuffle must be provided and explicitly set as boolean (it is recommended to set it as True for "
            f"training); got {shuffle}"
        )
    check_count("batch_size", batch_size)
    if num_epochs is not None:
        check_count("num_epochs", num_epochs)
    if seed is not None:
        check_count("seed", seed, least=0)
    if callable(x):
        if y is not None:
            raise ArgumentError("y must be None if x is a function: let it return (x, y).")
        loader = x
        load: Callable[[], ArrayData] = lambda: load_arrays(loader)  # noqa: E731
    else:
        data = ArrayData.of(x, y)
        load = lambda: data  # noqa: E731
    plan = _Plan(
        batch_size=int(batch_size),
        num_epochs=num_epochs,
        shuffle=shuffle,
        seed=seed,
        drop_remainder=drop_remainder,
        options=InputOptions(fresh_arrays=True, ragged=ragged, batch_size=int(batch_size), endless=num_epochs is None),
    )
    return ArrayInput(load, plan)


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """Defines how the arrays are cut into batches."""

    batch_size: int
    num_epochs: int | None
    shuffle: bool
    seed: int | None
    drop_remainder: bool
    options: InputOptions


class ArrayInput:
    """The input_fn that `numpy_input_fn` returns. Each call returns a new iterator."""

    def __init__(self, load: Callable[[], ArrayData], plan: _Plan) -> None:
        self._load = load
        self._plan = plan

    def __call__(self, *, config: object = None, input_context: InputContext | None = None) -> ArrayIterator:
        """Returns a new iterator over the rows of this process.

        Args:
            config: the RunConfig. Its `tf_random_seed` is the seed if none was given.
            input_context: selects the rows. Default: all rows.
        """
        seed = self._plan.seed
        if seed is None:
            seed = getattr(config, "tf_random_seed", None) or 0
        return ArrayIterator(self._load, self._plan, seed, input_context or InputContext())


class _Opened(NamedTuple):
    """The arrays and the order in which they are read. It is made at the first draw."""

    gather: Callable[[Any], Any]
    gather_slice: Callable[[slice], Any]
    order: ExampleOrder
    total: int | None
    fingerprint: str
    marked: bool
    too_wide: Mapping[tuple[int, str], str]


class ArrayIterator(Iterator[Any]):
    """Batches of arrays, starting at any example.

    Attributes:
        input_options: the properties that the input declares.
        global_rows: the number of rows of the last batch over all processes; None in a single process. Every process
            has all rows of a short last batch, and of batches that mark which of their rows are examples.
    """

    def __init__(self, load: Callable[[], ArrayData], plan: _Plan, seed: int, context: InputContext) -> None:
        self._load = load
        self._plan = plan
        self._seed, self._context = seed, context
        self._rows = plan.batch_size * context.num_input_pipelines
        several = context.num_input_pipelines > 1
        self._own = context.rows(self._rows) if several else None
        self.global_rows = 0 if several else None
        self.input_options = replace(plan.options, batch_size=self._rows) if several else plan.options
        self._examples = 0
        self._opened: _Opened | None = None

    @property
    def fingerprint(self) -> str:
        """Identifies the data and its order. Loads data that is loaded lazily."""
        return self._open().fingerprint

    def mapped(self, function: Callable[[Any, Any], tuple[Any, Any]]) -> ArrayIterator:
        """Returns the same iterator over the results of `function`, which is called once with all features and labels
        (None: no labels).
        """

        def load() -> ArrayData:
            data = self._load()
            x, y = function(data.x, data.y)
            return data if x is data.x and y is data.y else ArrayData.of(x, y)

        made = ArrayIterator(load, self._plan, self._seed, self._context)
        made.set_state(self._examples)
        return made

    @property
    def too_wide(self) -> Mapping[tuple[int, str], str]:
        """See `ArrayData`. Loads data that is loaded lazily."""
        return self._open().too_wide

    def get_state(self) -> int:
        """Returns the number of examples read so far."""
        return self._examples

    def set_state(self, state: int) -> None:
        """Continues after `state` examples."""
        self._examples = int(state)

    def __next__(self) -> Any:
        opened = self._opened or self._open()
        start = self._examples
        stop = start + self._rows
        if opened.total is not None and stop > opened.total:
            stop = opened.total
            if start >= stop or self._plan.drop_remainder:
                raise StopIteration
        self._examples = stop
        if self._own is not None:
            self.global_rows = stop - start
            if self.global_rows == self._rows and not opened.marked:
                return opened.gather(opened.order.rows(start, stop)[self._own])
        piece = opened.order.contiguous(start, stop)
        return opened.gather(opened.order.rows(start, stop)) if piece is None else opened.gather_slice(piece)

    def _open(self) -> _Opened:
        if self._opened is None:
            data, plan = self._load(), self._plan
            seed = self._seed if plan.shuffle else None
            fingerprint = fingerprint_of(
                "numpy",
                n=data.n,
                seed=self._seed if plan.shuffle else None,
                shuffle=plan.shuffle,
                shard="0/1",  # the position counts the examples of all processes
                arrays=data.summary,
            )
            total = None if plan.num_epochs is None else plan.num_epochs * data.n
            marked = isinstance(data.x, Mapping) and IS_REAL_EXAMPLE in data.x
            order = ExampleOrder(data.n, seed=seed)
            self._opened = _Opened(*data.gatherers(), order, total, fingerprint, marked, data.too_wide)
        return self._opened
