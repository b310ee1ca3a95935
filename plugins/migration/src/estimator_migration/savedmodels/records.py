"""What a SavedModel says about itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Methods of signatures by the names that TensorFlow Serving has for them.
METHODS = {
    "tensorflow/serving/predict": "predict",
    "tensorflow/serving/classify": "classify",
    "tensorflow/serving/regress": "regress",
    "tensorflow/supervised/eval": "eval",
    "tensorflow/supervised/training": "train",
}


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """A tensor that a signature takes or returns.

    Args:
        name: in the graph.
        dtype: a name of numpy's, or "string".
        shape: sizes; None is any size. None in the place of the shape: of any rank.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True, kw_only=True)
class Signature:
    """A function of the model.

    Args:
        method: "predict", "classify", "regress", "eval", "train", or TensorFlow's own name.
        inputs: what it takes.
        outputs: what it returns.
    """

    method: str
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class ExampleFeature:
    """A feature that is parsed from tf.Examples.

    Args:
        kind: "fixed", "any number" (VarLenFeature), "sequence" (FixedLenSequenceFeature) or "ragged".
        dtype: "float32", "int64" or "string".
        shape: of one example; of one item in a sequence.
        default: the values of a record without the feature, or what fills up a sequence; None: refused.
    """

    kind: str
    dtype: str
    shape: tuple[int, ...] = ()
    default: Any = None


@dataclass(frozen=True, kw_only=True)
class Parsing:
    """A place where the graph parses tf.Examples.

    Args:
        node: its name in the graph.
        source: the tensor of the records, where the graph shows it.
        features: by name.
    """

    node: str
    source: str | None
    features: Mapping[str, ExampleFeature]


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """A table of words.

    Args:
        node: its name in the graph.
        feature: the feature whose values are looked up.
        outputs: the outputs of signatures that show its words, as "signature/output".
        words: if the graph holds them.
        asset: the file that holds them, one a line.
        size: how many words of the file count; None: all.
        buckets: buckets for unknown words.
        default: the id of an unknown word, without buckets.
    """

    node: str
    feature: str | None
    outputs: tuple[str, ...]
    words: tuple[str | int, ...] | None = None
    asset: str | None = None
    size: int | None = None
    buckets: int = 0
    default: int | str | None = None


@dataclass(frozen=True, kw_only=True)
class MetaGraph:
    """One graph of a SavedModel.

    Args:
        tags: such as "serve".
        tensorflow: the version that wrote it.
        signatures: by name.
        parsings: where tf.Examples are parsed.
        vocabularies: its tables.
        assets: files in the directory `assets`.
    """

    tags: tuple[str, ...]
    tensorflow: str
    signatures: Mapping[str, Signature]
    parsings: tuple[Parsing, ...]
    vocabularies: tuple[Vocabulary, ...]
    assets: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SavedModel:
    """The contents of a SavedModel of TensorFlow.

    Args:
        path: its directory.
        graphs: the one for serving first.
    """

    path: str
    graphs: tuple[MetaGraph, ...]

    def to_json(self) -> dict[str, Any]:
        """All of it, for programs."""
        return dataclasses.asdict(self)
