"""What host transforms do, described so that an export format can write it into its own file.

Values are dense arrays by name. The first axis is the example. A place of a feature without a value is *blank*: b"" in
text and -1 in integers. The vocabulary is closed: a format lowers each of these records, or refuses it by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from estimator_core._export.receivers import Feature
from estimator_core.errors import ExportError


@dataclass(frozen=True, kw_only=True)
class ParsedFeature:
    """A feature that is read from a tf.Example.

    Attributes:
        shape: the shape of one example; if `variable`, the number of places.
        dtype: the dtype of the array: "string", or a number type that fits the stored int64 or float32 values.
        default: all values, flat, for records without the feature; None: such a record is refused. Not used if
            `variable`.
        variable: records hold any number of values up to the places; the other places are blank, or 0 for floats.
    """

    shape: tuple[int, ...]
    dtype: str
    default: tuple[Any, ...] | None = None
    variable: bool = False


@dataclass(frozen=True, kw_only=True)
class ParseExamples:
    """Serialized tf.Examples, string[batch], become their features, each under its own name."""

    input: str
    features: Mapping[str, ParsedFeature]


@dataclass(frozen=True, kw_only=True)
class Reshape:
    """Every example gets another shape; `(-1,)` makes one axis of all."""

    input: str
    output: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Cast:
    """Numbers in another dtype, as numpy's `astype` converts them."""

    input: str
    output: str
    dtype: str


@dataclass(frozen=True, kw_only=True)
class Fit:
    """[batch, any] becomes [batch, width], padded with `fill`. Beyond it, only `fill` is accepted."""

    input: str
    output: str
    width: int
    fill: bytes | int | float


@dataclass(frozen=True, kw_only=True)
class Within:
    """Integers in [0, count) and blank ones (-1) stay, others become `otherwise`. The result is int64, same shape."""

    input: str
    output: str
    count: int
    otherwise: int = -1


@dataclass(frozen=True, kw_only=True)
class HashBucket:
    """FarmHash `Fingerprint64(value) % buckets` as int64, with integers as decimal digits; -1 for blank values."""

    input: str
    output: str
    buckets: int


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """The place of each value among `words`, as int64 of the same shape; -1 for blank values.

    Attributes:
        words: all different; bytes for text, otherwise integers.
        otherwise: what values that are not among the words become, without buckets.
        buckets: if not 0, they become `len(words) + Fingerprint64(value) % buckets`.
    """

    input: str
    output: str
    words: tuple[Any, ...]
    otherwise: int = -1
    buckets: int = 0


@dataclass(frozen=True, kw_only=True)
class Bucketize:
    """float32[batch, places] as int64: how many boundaries are `<=` it, plus `place * (len(boundaries) + 1)`."""

    input: str
    output: str
    boundaries: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Cross:
    """Every combination of one place of each input, the last input changing fastest: int64[batch, combinations].

    A combination is `FingerprintCat64(...FingerprintCat64(key, first)..., last) % buckets`, where text enters by its
    Fingerprint64 and integers as they are. It is -1 where a place of one of `blanks` is blank.

    Attributes:
        inputs: string or int64 [batch, places] each.
        buckets: the number of buckets.
        key: uint64.
        blanks: for each input the value of its shape whose blanks leave a combination out; None: none does.
    """

    inputs: tuple[str, ...]
    output: str
    buckets: int
    key: int
    blanks: tuple[str | None, ...]


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """int32[batch]: one more than the place of the last value of [batch, places] that is not blank; 0 without one."""

    input: str
    output: str


@dataclass(frozen=True, kw_only=True)
class FullLengths:
    """int32[batch]: `steps` for every example of the input."""

    input: str
    output: str
    steps: int


@dataclass(frozen=True, kw_only=True)
class EqualLengths:
    """Changes nothing, but refuses a batch whose `inputs` (int32[batch] each) differ."""

    inputs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class NameOf:
    """Integers become the names at these places: strings, in the same shape."""

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
    """What one host transform does to a batch.

    Attributes:
        operations: in order; each reads arrays of the batch or results of earlier ones, and no two write one name.
        outputs: the value of each array of the transformed batch, by the array's name; only these are returned.
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
    """A `HostTransform` that says what it does; optional. Formats that hold the host part need it."""

    def program(self, features: Mapping[str, Feature]) -> HostProgram:
        """What `apply` does to a batch of these features.

        Args:
            features: the arrays of a batch, by name.

        Raises:
            ExportError: there are no operations for it. The message says why.
        """
        ...


def host_programs(transforms: Sequence[Any], features: Mapping[str, Feature]) -> tuple[HostProgram, ...]:
    """What each host transform does, in order.

    Args:
        transforms: `HostTransform`s in order.
        features: what the first one takes, by name.

    Raises:
        ExportError: a transform does not describe its operations, or cannot for these features. The message names it.

    Example:
        >>> from estimator_core._export.raw import Rename
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
