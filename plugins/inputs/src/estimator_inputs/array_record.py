"""`array_record_input_fn`: batches of the tf.Examples in ArrayRecord files, shuffled as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, InputError, PluginError
from estimator_core.inputs import InputContext, InputOptions
from estimator_inputs.reading.bad_rows import BadRowLog, BadRows
from estimator_inputs.reading.blocks import BadRow, split_labels
from estimator_inputs.reading.files import FilePattern, find_files
from estimator_inputs.reading.options import OnError, ReadPlan
from estimator_inputs.reading.ragged import Columns, rows_of
from estimator_inputs.reading.unchanged import Unchanged
from estimator_inputs.reading.vocabulary import Vocabularies
from estimator_inputs.tfrecord.decode import Fault, decode_examples
from estimator_inputs.tfrecord.spec import FeatureSpec, feature_specs, summary_of

#: The number of files whose records are counted at a time.
_TOGETHER = 32


def array_record_input_fn(
    file_pattern: FilePattern,
    batch_size: int,
    features: Mapping[str, Any],
    *,
    shuffle: bool,
    label_key: str | None = None,
    vocabularies: Vocabularies | None = None,
    num_epochs: int | None = 1,
    seed: int | None = None,
    drop_remainder: bool = False,
    on_error: OnError = "raise",
) -> ArrayRecordInput:
    """Returns an input_fn over the tf.Examples of ArrayRecord files. Each call of it returns a new iterator.

    Records are read by number, so a shuffled epoch is a permutation of all records, without a buffer in memory. Any
    position is restored at once. Requires the extra `array_record`.

    Args:
        file_pattern: a path, a glob pattern, or a list of them.
        batch_size: examples per batch, in each process.
        features: see `tfrecord_input_fn`.
        shuffle: True for training, False for evaluation and prediction.
        label_key: the feature that is the label. None: no label.
        vocabularies: allowed strings or integers by feature; a record with any other value is bad. None: all values are
            allowed.
        num_epochs: passes over the data; None repeats forever.
        seed: the seed of the order. None: `tf_random_seed` of the RunConfig, or 0 if it is not set.
        drop_remainder: whether to drop a short last batch.
        on_error: "raise", or "skip" to drop, count and report bad records.

    Raises:
        ArgumentError, ArgumentTypeError: a file does not exist, the specification of a feature is invalid, or an
            argument is invalid.
        PluginError: grain is not installed.
        InputError: while reading: a file is incomplete, or a record is damaged or does not match `features`. The
            message names file, record and feature.

    Example:
        >>> import tempfile
        >>> from array_record.python.array_record_module import ArrayRecordWriter
        >>> from estimator_core import export
        >>> record = export.example_class()()
        >>> record.features.feature["age"].int64_list.value.append(3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = ArrayRecordWriter(f"{folder}/ages.array_record", "group_size:1")
        ...     for _ in range(3):
        ...         writer.write(record.SerializeToString())
        ...     writer.close()
        ...     spec = {"age": export.FixedLenFeature((), "int64")}
        ...     input_fn = array_record_input_fn(f"{folder}/*.array_record", 2, spec, shuffle=True)
        ...     [batch["age"].tolist() for batch in input_fn()]
        [[3, 3], [3]]

    Source: `grain.sources.ArrayRecordDataSource`.
    """
    specs = feature_specs(features, vocabularies)
    if label_key is not None and label_key not in specs:
        raise ArgumentError(f"label_key {label_key!r} is not one of the features: {', '.join(specs)}.")
    options = {"num_epochs": num_epochs, "seed": seed, "drop_remainder": drop_remainder, "on_error": on_error}
    plan = ReadPlan.of(batch_size, shuffle, options)
    _grain()
    return ArrayRecordInput(find_files(file_pattern), specs, label_key, plan)


class ArrayRecordInput:
    """The result of `array_record_input_fn`. Each call returns a new iterator."""

    def __init__(
        self, files: tuple[Path, ...], specs: Mapping[str, FeatureSpec], label_key: str | None, plan: ReadPlan
    ) -> None:
        self.files = files
        self.specs = specs
        self.label_key = label_key
        self.plan = plan
        self.bad_row_log = BadRowLog()

    def __call__(self, *, config: Any = None, input_context: InputContext | None = None) -> ArrayRecordIterator:
        """Returns a new iterator over the rows of this process.

        Args:
            config: the RunConfig. Its `tf_random_seed` is the seed if no seed was set.
            input_context: the rows to read. Default: all rows.
        """
        seed = self.plan.seed
        if seed is None:
            seed = getattr(config, "tf_random_seed", None) or 0
        context = input_context or InputContext()
        return ArrayRecordIterator(self, int(seed), context)


class ArrayRecordIterator(Iterator[Any]):
    """Yields batches of records, from any record on. A position is the number of records that all processes have read.

    Attributes:
        input_options: the declared options of the input.
        global_rows: the number of rows of the last batch in all processes together. None with a single process. Every
            process reads the complete batch if it is short, or if it may become short because bad records are left out.
    """

    def __init__(self, source: ArrayRecordInput, seed: int, context: InputContext) -> None:
        plan = source.plan
        varying = any(spec.form != "fixed" for spec in source.specs.values())
        self.input_options = InputOptions(fresh_arrays=True, endless=plan.num_epochs is None, varying_shapes=varying)
        self._source = source
        self._seed = seed
        several = context.num_input_pipelines > 1
        self._rows = plan.batch_size * context.num_input_pipelines
        self._own = context.rows(self._rows) if several and plan.on_error == "raise" else None
        self.global_rows = 0 if several else None
        self._bad = BadRows(skip=plan.on_error == "skip", log=source.bad_row_log)
        self._read = 0
        self._files: list[Unchanged] = []
        self._held: set[int] = set()
        self._ends = np.empty(0, np.int64)
        self._records: Any = None
        self._order: Any = None
        self._length = 0

    @property
    def bad_rows(self) -> int:
        """The number of records skipped so far."""
        return self._bad.count

    @property
    def fingerprint(self) -> str:
        """A text that names the records and their order."""
        self._open()
        plan = self._source.plan
        seed = self._seed if plan.shuffle else None
        return "; ".join(
            [
                "array_record",
                f"n={len(self._records)}",
                f"seed={seed}",
                f"shuffle={plan.shuffle}",
                "shard=0/1",  # the position is common to all processes
                f"columns={summary_of(self._source.specs)}",
            ]
        )

    def get_state(self) -> int:
        """Returns the number of records read so far."""
        return self._read

    def set_state(self, state: int) -> None:
        """Continues after `state` records."""
        self._read = int(state)

    def __next__(self) -> Any:
        columns = self.next_columns()
        if columns is None:
            raise StopIteration
        return split_labels(columns, self._source.label_key)

    def next_columns(self) -> Columns | None:
        """Returns the columns of the next batch, or None at the end."""
        self._open()
        plan = self._source.plan
        while True:
            stop = self._read + self._rows
            total = None if plan.num_epochs is None else plan.num_epochs * self._length
            if total is not None and stop > total:
                stop = total
                if self._read >= stop or plan.drop_remainder:
                    return None
            # the order of the next epoch follows the order of this epoch
            wanted = range(self._read, stop)
            if self._own is not None and len(wanted) == self._rows:
                wanted = (self._own + self._read).tolist()
            numbers = [int(self._order[place]) for place in wanted]
            drawn, self._read = stop - self._read, stop
            columns = self._decoded(numbers)
            rows = rows_of(columns)
            if rows:
                if self.global_rows is not None:
                    self.global_rows = rows if self._own is None else drawn
                return columns

    def _decoded(self, numbers: list[int]) -> Columns:
        columns, faults = _decoded(self._records, numbers, self._source.specs)
        for file in np.unique(self._file_of(numbers)).tolist():  # not all, because there may be thousands
            self._files[file].check(just_opened=file not in self._held)  # grain opens a file when it needs it
            self._held.add(file)
        self._bad.add([BadRow(self._where(numbers[row]), _told(fault)) for row, fault in faults.items()])
        return columns

    def _where(self, number: int) -> str:
        """Returns the file and record of a number among all records."""
        file = int(self._file_of([number])[0])
        return f"{self._source.files[file]}, record {number - (int(self._ends[file - 1]) if file else 0)}"

    def _file_of(self, numbers: list[int]) -> np.ndarray:
        return np.searchsorted(self._ends, numbers, side="right")

    def _open(self) -> None:
        if self._records is not None:
            return
        self._files = [Unchanged(path) for path in self._source.files]
        self._records = _opened(self._source.files)
        with ThreadPoolExecutor(_TOGETHER) as pool:
            self._ends = np.cumsum([*pool.map(_size_of, self._source.files)])
        order = _grain().MapDataset.range(len(self._records))
        if self._source.plan.shuffle:
            order = order.shuffle(seed=self._seed % (1 << 32))
        self._length = len(order)
        if not self._length:
            raise InputError(f"No records in {len(self._source.files)} files, beginning with {self._source.files[0]}.")
        self._order = order.repeat()


def _grain() -> Any:
    try:
        import grain
    except ImportError as error:
        raise PluginError(
            "ArrayRecord files are read by grain, which is not installed: pip install 'estimator-inputs[array-record]'."
        ) from error
    return grain


def _opened(files: Sequence[Path]) -> Any:
    """Returns a source of the records of files, by number.

    Raises:
        InputError: a file is not an ArrayRecord file, or is damaged or truncated.
    """
    source_of = _grain().sources.ArrayRecordDataSource
    try:
        return source_of([str(path) for path in files])
    except RuntimeError:
        for path in files:
            try:
                source_of(str(path))
            except RuntimeError as error:
                raise InputError(f"{path} is not a complete ArrayRecord file: {error}. Write it again.") from error
        raise


def _size_of(path: Path) -> int:
    return len(_opened([path]))


def _decoded(source: Any, numbers: list[int], specs: Mapping[str, FeatureSpec]) -> tuple[Columns, dict[int, Fault]]:
    """Returns the columns of the good records, and the faults of the others by their index in `numbers`."""
    records, damaged = _read(source, numbers)
    sizes = np.array([len(record) for record in records], np.int64)
    return decode_examples(b"".join(records), np.cumsum(sizes) - sizes, sizes, specs, damaged)


def _read(source: Any, numbers: list[int]) -> tuple[list[bytes], dict[int, Fault]]:
    """Returns records, and the faults of those that cannot be read. Unreadable records are empty bytes."""
    with suppress(RuntimeError):
        return source.__getitems__(numbers) if numbers else [], {}  # the source refuses to read no records
    records: list[bytes] = []
    damaged: dict[int, Fault] = {}
    for place, number in enumerate(numbers):
        try:
            records.append(source[number])
        except RuntimeError as error:
            records.append(b"")
            damaged[place] = (None, f"it is damaged: {error}")
    return records, damaged


def blocks_of_records(
    path: Path, specs: Mapping[str, FeatureSpec], size: int = 4096
) -> Iterator[tuple[np.ndarray, Columns, list[BadRow]]]:
    """Yields the records of a file in order: the numbers of the good ones, their columns, and the bad ones."""
    file, source = Unchanged(path), _opened([path])
    for first in range(0, len(source), size):
        numbers = list(range(first, min(first + size, len(source))))
        columns, faults = _decoded(source, numbers, specs)
        file.check()
        bad = [BadRow(f"{path}, record {first + row}", _told(fault)) for row, fault in faults.items()]
        yield first + np.setdiff1d(np.arange(len(numbers)), list(faults)), columns, bad


def _told(fault: Fault) -> object:
    feature, text = fault
    return text if feature is None else f"feature {feature!r} {text}"


def some_records(path: Path, most: int) -> list[bytes]:
    """Returns the first records of a file, without unreadable ones.

    Raises:
        InputError: all of them are unreadable.
    """
    source = _opened([path])
    records, damaged = _read(source, list(range(min(most, len(source)))))
    if damaged and len(damaged) == len(records):
        told = f"{path}: the first {len(damaged)} records cannot be read."
        raise InputError(f"{told} Record 0: {_told(damaged[0])}. Write the file again.")
    return [record for place, record in enumerate(records) if place not in damaged]
