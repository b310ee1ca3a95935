"""The contents of a SavedModel."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: The methods of signatures by their names in TensorFlow Serving.
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
        name: the name in the graph.
        dtype: the name of a numpy dtype, or "string".
        shape: the sizes. None as a size means any size. None as the shape means any rank.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True, kw_only=True)
class Signature:
    """A function of the model.

    Args:
        method: "predict", "classify", "regress", "eval", "train", or the name that TensorFlow uses.
        inputs: the input tensors.
        outputs: the output tensors.
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
        shape: the shape of one example, or of one item in a sequence.
        default: the values of a record without the feature, or the fill value of a sequence. None: such a record is
            refused.
    """

    kind: str
    dtype: str
    shape: tuple[int, ...] = ()
    default: Any = None


@dataclass(frozen=True, kw_only=True)
class Parsing:
    """A place where the graph parses tf.Examples.

    Args:
        node: the name of the node in the graph.
        source: the tensor of the records, or None if the graph does not show it.
        features: the features by name.
    """

    node: str
    source: str | None
    features: Mapping[str, ExampleFeature]


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """A table of words.

    Args:
        node: the name of the node in the graph.
        feature: the feature whose values are looked up.
        outputs: the outputs of signatures that show its words, as "signature/output".
        words: the words, if the graph holds them.
        asset: the file that holds the words, one per line.
        size: the number of words of the file that count. None: all.
        buckets: the number of buckets for unknown words.
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
        tags: the tags, such as "serve".
        tensorflow: the version of TensorFlow that wrote it.
        signatures: the signatures by name.
        parsings: the places where tf.Examples are parsed.
        vocabularies: the tables of words.
        assets: the files in the directory `assets`.
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
        path: the directory.
        graphs: the graphs, the one for serving first.
    """

    path: str
    graphs: tuple[MetaGraph, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns all contents as JSON values."""
        return dataclasses.asdict(self)
