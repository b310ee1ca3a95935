"""`tfrecord_input_fn`: batches of the tf.Examples in TFRecord files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from estimator_core.errors import ArgumentError
from estimator_inputs.reading.blocks import BadRow, Block, Piece, Place, split_labels
from estimator_inputs.reading.file_input import FileInput
from estimator_inputs.reading.files import FilePattern, find_files
from estimator_inputs.reading.options import ReadOptions, ReadPlan
from estimator_inputs.reading.ragged import Columns
from estimator_inputs.reading.vocabulary import Vocabularies
from estimator_inputs.tfrecord.spec import FeatureSpec, feature_specs, summary_of


def tfrecord_input_fn(
    file_pattern: FilePattern,
    batch_size: int,
    features: Mapping[str, Any],
    *,
    shuffle: bool,
    label_key: str | None = None,
    vocabularies: Vocabularies | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    **options: Unpack[ReadOptions],
) -> FileInput:
    """Returns an input_fn over the tf.Examples of TFRecord files. Each call of it returns a new iterator.

    Both checksums of every record are verified.

    Args:
        file_pattern: a path, a glob pattern, or a list of them.
        batch_size: examples per batch, in each process.
        features: `ec.export.FixedLenFeature`, `VarLenFeature` or `FixedLenSequenceFeature` (or TensorFlow's) by name.
            Strings become bytes objects. Features of any length are dense, [batch, longest], padded with -1, b"" or 0.
            The longest length is rounded up to a power of two.
        shuffle: True for training, False for evaluation and prediction.
        label_key: the feature that is the label. None: no label.
        vocabularies: allowed strings or integers by feature; a record with any other value is bad. None: all values are
            allowed.
        sequence_features: the feature lists of records that are tf.SequenceExamples: `FixedLenSequenceFeature` with the
            shape of a step, or `VarLenFeature` if steps have one value each. `features` are then those of the context.
            A record without the list of a `FixedLenSequenceFeature` is bad, unless `allow_missing=True` is set.
        options: see `ReadOptions`.

    Raises:
        ArgumentError, ArgumentTypeError: a file does not exist, the specification of a feature is invalid, or an option
            is invalid.
        InputError: while reading: a file is truncated, a checksum is wrong, or a record lacks a feature, has another
            kind or number of values, or an unknown token. The message names file, record and feature.

    Example:
        >>> import tempfile
        >>> from estimator_core import export
        >>> from estimator_inputs import write_tfrecord
        >>> record = export.example_class()()
        >>> record.features.feature["age"].int64_list.value.append(3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = write_tfrecord(f"{folder}/ages.tfrecord", [record.SerializeToString()] * 3)
        ...     spec = {"age": export.FixedLenFeature((), "int64")}
        ...     input_fn = tfrecord_input_fn(f"{folder}/*.tfrecord", 2, spec, shuffle=False)
        ...     [batch["age"].tolist() for batch in input_fn()]
        [[3, 3], [3]]

    Source: `tf.data.experimental.make_batched_features_dataset`.
    """
    sequences = {name: _required(spec) for name, spec in (sequence_features or {}).items()}
    both = [name for name in sequences if name in features]
    if both:
        raise ArgumentError(f"{both[0]!r} is in both features and sequence_features: name it once.")
    specs = feature_specs({**features, **sequences}, vocabularies)
    for name in sequences:
        if specs[name].form == "fixed":
            raise ArgumentError(
                f"sequence_features[{name!r}] must be a FixedLenSequenceFeature with the shape of one step."
            )
    if label_key is not None and label_key not in specs:
        raise ArgumentError(f"label_key {label_key!r} is not one of the features: {', '.join(specs)}.")
    plan = ReadPlan.of(batch_size, shuffle, {"parser_num_threads": 0, **options})
    lists = None if sequence_features is None else {name: specs[name] for name in sequences}
    kind = TFRecordKind(specs, label_key, plan, lists=lists)
    return FileInput(find_files(file_pattern), kind, plan)


def make_batched_features_dataset(
    file_pattern: FilePattern,
    batch_size: int,
    features: Mapping[str, Any],
    label_key: str | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int | None = 10_000,
    shuffle_seed: int | None = None,
    reader_num_threads: int = 1,
    parser_num_threads: int = 0,
    drop_final_batch: bool = False,
) -> FileInput:
    """Calls `tfrecord_input_fn` with the arguments and defaults of tf.data.

    Return the result from an input_fn, or use it as an input_fn.

    Raises:
        ArgumentError, ArgumentTypeError: see `tfrecord_input_fn`.

    Example:
        >>> make_batched_features_dataset("no-such.tfrecord", 2, {"x": 3})
        Traceback (most recent call last):
            ...
        estimator_core.errors.ArgumentTypeError: features['x'] must be an ec.export.FixedLenFeature, ...

    Source: `tf.data.experimental.make_batched_features_dataset`.
    """
    return tfrecord_input_fn(
        file_pattern,
        batch_size,
        features,
        shuffle=shuffle,
        label_key=label_key,
        num_epochs=num_epochs,
        shuffle_buffer_size=_buffer(shuffle, shuffle_buffer_size),
        seed=shuffle_seed,
        reader_num_threads=reader_num_threads,
        parser_num_threads=parser_num_threads,
        drop_remainder=drop_final_batch,
    )


class TFRecordKind:
    """Reads TFRecord files of tf.Examples."""

    name = "tfrecord"

    def __init__(
        self,
        specs: Mapping[str, FeatureSpec],
        label_key: str | None,
        plan: ReadPlan,
        *,
        lists: Mapping[str, FeatureSpec] | None = None,
    ) -> None:
        self._specs = specs
        self._label_key = label_key
        self._plan = plan
        self._lists = lists
        self.varying_shapes = any(spec.form != "fixed" for spec in specs.values())
        self.summary = summary_of(specs)
        self.columns = tuple(specs)

    def pieces(self, path: Path, place: Place) -> Iterator[Piece]:
        """Yields blocks of whole records. A place is (byte offset, record)."""
        from estimator_inputs.tfrecord.records import frames_of

        offset, record = place or (0, 0)
        for frames in frames_of(
            path,
            self._plan.compression,
            block_bytes=self._plan.block_bytes,
            offset=offset,
            record=record,
            resync=self._plan.on_error == "skip",
        ):
            yield Piece(path, frames, [frames.after, frames.next_record])

    def decode(self, piece: Piece, *, all_bad_rows: bool) -> Block:
        """Decodes the examples of a block whose checksums are valid."""
        from estimator_inputs.tfrecord.checksums import wrong_records
        from estimator_inputs.tfrecord.decode import Fault, decode_examples
        from estimator_inputs.tfrecord.sequences import flattened

        frames = piece.content
        begins, sizes = frames.begins, frames.sizes
        wrong = wrong_records(frames.data, begins, sizes, frames.stored_checksums()).tolist()
        faults: dict[int, Fault] = dict.fromkeys(wrong, (None, "the checksum of the record is wrong"))
        if wrong:
            sizes = sizes.copy()
            sizes[wrong] = 0  # decoded as empty records, and left out as faulty ones
        data = frames.data
        if self._lists is not None:
            data, begins, sizes, none = flattened(data, begins, sizes, self._lists)
            faults = {**{row: (None, text) for row, text in none.items()}, **faults}
        columns, more = decode_examples(data, begins, sizes, self._specs, faulty=faults)
        bad = [self._bad_row(piece.path, frames.record + row, fault) for row, fault in more.items()]
        if frames.fault is not None:
            bad.append(self._bad_row(piece.path, frames.record + len(begins), (None, frames.fault)))
        return Block(columns=columns, rows=len(begins) - len(more), bad=bad, first=frames.record)

    def batch(self, columns: Columns) -> Any:
        """Returns features, and labels if there is a label key."""
        return split_labels(columns, self._label_key)

    def _bad_row(self, path: Path, record: int, fault: tuple[str | None, object]) -> BadRow:
        feature, text = fault
        return BadRow(f"{path}, record {record}", text if feature is None else f"feature {feature!r} {text}")


def _required(spec: Any) -> Any:
    """Returns the specification of a feature list, which is required if the user does not say."""
    return replace(spec, allow_missing=False) if getattr(spec, "allow_missing", False) is None else spec


def _buffer(shuffle: bool, rows: int | None) -> int:
    """Returns the size of the shuffle buffer in rows. None is allowed only with shuffle=False."""
    if rows is None and shuffle:
        raise ArgumentError("shuffle_buffer_size must be an int >= 1 where shuffle is True. Given: None.")
    return 10_000 if rows is None else rows
