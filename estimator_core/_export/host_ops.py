"""Descriptions of host transforms, so that an export format can write them into its own file; and one that renames.

Values are dense arrays by name. The first axis is the example. A place of a feature without a value is *blank*: b"" in
text and -1 in integers. The set of operations is closed. A format lowers each of these records, or refuses it by its
name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from estimator_core._export.receivers import Feature
from estimator_core.errors import ExportError


@dataclass(frozen=True, kw_only=True)
class ParsedFeature:
    """A feature that is read from a tf.Example.

    Attributes:
        shape: the shape of one example; if `variable`, the number of places.
        dtype: the dtype of the array: "string", or a number type that fits the stored int64 or float32 values.
        default: the flat values for records without the feature. None: such a record is refused. Ignored if `variable`.
        variable: records contain any number of values, up to the number of places. The other places are blank, or 0 for
            floats.
    """

    shape: tuple[int, ...]
    dtype: str
    default: tuple[Any, ...] | None = None
    variable: bool = False


@dataclass(frozen=True, kw_only=True)
class ParseExamples:
    """Parses serialized tf.Examples, string[batch], into their features, each under its own name."""

    input: str
    features: Mapping[str, ParsedFeature]


@dataclass(frozen=True, kw_only=True)
class Reshape:
    """Changes the shape of every example. `(-1,)` joins all axes into one."""

    input: str
    output: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Cast:
    """Converts numbers to another dtype, like numpy's `astype`."""

    input: str
    output: str
    dtype: str


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Pads or cuts [batch, any] to [batch, width] with `fill`. Values beyond the width must be `fill`."""

    input: str
    output: str
    width: int
    fill: bytes | int | float


@dataclass(frozen=True, kw_only=True)
class Within:
    """Keeps integers in [0, count) and blank ones (-1), and replaces others by `otherwise`.

    Returns int64 of the same shape.
    """

    input: str
    output: str
    count: int
    otherwise: int = -1


@dataclass(frozen=True, kw_only=True)
class HashBucket:
    """Computes FarmHash `Fingerprint64(value) % buckets` as int64, with integers as decimal digits; -1 for blank
    values.
    """

    input: str
    output: str
    buckets: int


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """Looks up the index of each value in `words`, as int64 of the same shape; -1 for blank values.

    Attributes:
        input, output: the names of the array that is read and of the one that is written.
        words: the unique values: bytes for text, otherwise integers.
        otherwise: the result for values that are not in `words`, if there are no buckets.
        buckets: if not 0, values that are not in `words` become `len(words) + Fingerprint64(value) % buckets`.
    """

    input: str
    output: str
    words: tuple[Any, ...]
    otherwise: int = -1
    buckets: int = 0


@dataclass(frozen=True, kw_only=True)
class Bucketize:
    """Converts float32[batch, places] to int64: the number of boundaries `<=` the value, plus `place * (len(boundaries)
    + 1)`.
    """

    input: str
    output: str
    boundaries: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Cross:
    """Computes every combination of one place per input, with the last input changing fastest: int64[batch,
    combinations].

    A combination is `FingerprintCat64(...FingerprintCat64(key, first)..., last) % buckets`, with Fingerprint64 for text
    and integers unchanged. It is -1 if a place of one of `blanks` is blank.

    Attributes:
        inputs: the names of the arrays that are read: string or int64 [batch, places] each.
        output: the name of the array that is written.
        buckets: the number of buckets.
        key: uint64.
        blanks: for each input, a value of the same shape whose blanks exclude a combination; None: no combination is
            excluded.
    """

    inputs: tuple[str, ...]
    output: str
    buckets: int
    key: int
    blanks: tuple[str | None, ...]


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """Computes int32[batch]: one more than the last place of [batch, places] that is not blank; 0 if all are blank."""

    input: str
    output: str


@dataclass(frozen=True, kw_only=True)
class FullLengths:
    """Computes int32[batch]: `steps` for every example of the input."""

    input: str
    output: str
    steps: int


@dataclass(frozen=True, kw_only=True)
class EqualLengths:
    """Refuses a batch whose `inputs` (int32[batch] each) differ, and changes nothing."""

    inputs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class NameOf:
    """Replaces integers by the names with these indices: strings of the same shape."""

    input: str
    output: str
    names: tuple[str, ...]


#: An operation of the host part of an export.
HostOperation = (
    ParseExamples
    | Reshape
    | Cast
    | Fit
    | Within
    | HashBucket
    | Lookup
    | Bucketize
    | Cross
    | Lengths
    | FullLengths
    | EqualLengths
    | NameOf
)


@dataclass(frozen=True, kw_only=True)
class HostProgram:
    """The operations of one host transform on a batch.

    Attributes:
        operations: the operations in order. Each reads arrays of the batch or results of earlier operations. Each
            writes a different name.
        outputs: the value of each array of the transformed batch, by array name. Only these arrays are returned.
        features: the shape and dtype of each output.

    Example:
        >>> operation = Lookup(input="city", output="ids", words=(b"Rome", b"Oslo"))
        >>> features = {"city.ids": Feature((None, 1), "int64")}
        >>> HostProgram(operations=(operation,), outputs={"city.ids": "ids"}, features=features).operations[0].words
        (b'Rome', b'Oslo')
    """

    operations: tuple[HostOperation, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict[str, str])
    features: Mapping[str, Feature] = field(default_factory=dict[str, Feature])


@runtime_checkable
class DescribesOperations(Protocol):
    """An optional contract for a `HostTransform` that describes its operations.

    Formats that contain host transforms require it.
    """

    def program(self, features: Mapping[str, Feature]) -> HostProgram:
        """Returns the operations of `apply` on a batch of these features.

        Args:
            features: the arrays of a batch, by name.

        Raises:
            ExportError: the transform cannot be expressed as operations. The message states the reason.
        """
        ...


def host_programs(transforms: Sequence[Any], features: Mapping[str, Feature]) -> tuple[HostProgram, ...]:
    """Returns the program of each host transform, in order.

    Args:
        transforms: `HostTransform`s in order.
        features: the inputs of the first transform, by name.

    Raises:
        ExportError: a transform does not describe its operations, or cannot describe them for these features. The
            message names it.

    Example:
        >>> (program,) = host_programs([Rename({"input": "x"})], {"input": Feature((None, 2))})
        >>> program.features
        {'x': Feature(shape=(None, 2), dtype='float32')}
    """
    programs: list[HostProgram] = []
    for transform in transforms:
        if not isinstance(transform, DescribesOperations):
            raise ExportError(
                f"The host transform {transform.name!r} does not say what its operations are (it has no method "
                "`program`), so only the format 'stablehlo' holds it, for readers with its package."
            )
        programs.append(transform.program(programs[-1].features if programs else features))
    return tuple(programs)


class Rename:
    """A host transform that renames arrays. All other arrays keep their names.

    Args:
        names: the new name of each array, by its old name.

    Example:
        >>> Rename({"input": "x"}).apply({"input": np.zeros(1)})
        {'x': array([0.])}
    """

    name, version = "rename", 1

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)

    def config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {"names": self._names}

    @property
    def files(self) -> Mapping[str, Path]:
        """Returns an empty mapping, because it needs no files."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the batch under the new names."""
        return {self._names.get(name, name): array for name, array in batch.items()}

    def program(self, features: Mapping[str, Feature]) -> HostProgram:
        """Returns a program without operations, because only names change."""
        outputs = {self._names.get(name, name): name for name in features}
        return HostProgram(outputs=outputs, features={new: features[old] for new, old in outputs.items()})
