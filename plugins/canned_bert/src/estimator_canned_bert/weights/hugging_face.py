"""The reader and writer of Hugging Face directories: config.json and model.safetensors."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_canned_bert.config import BertConfig
from estimator_canned_bert.encoder.variables import OUTPUT_WEIGHTS
from estimator_canned_bert.optimization.averaging import with_averages
from estimator_canned_bert.text.tokenizer import TOKENIZER_CONFIG
from estimator_canned_bert.weights.names import hugging_face_names
from estimator_canned_bert.weights.torch_file import read_torch_file
from estimator_core.errors import ArgumentError, CheckpointCorruptError

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
#: The files that older versions of transformers wrote.
OLD_WEIGHTS, OLD_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
#: The dtypes that safetensors reads into numpy.
_READ = frozenset(["BOOL", "U8", "I8", "U16", "I16", "F16", "BF16", "U32", "I32", "F32", "U64", "I64", "F64", "C64"])
TOKENIZER_FILES = ("vocab.txt", "tokenizer.json", TOKENIZER_CONFIG, "special_tokens_map.json", "spiece.model")


def read_hugging_face(directory: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Returns the arrays of a Hugging Face directory under the names of google-research. Other arrays keep their names.

    Args:
        directory: a directory with config.json and model.safetensors, or its index and parts, or the same of
            pytorch_model.bin.

    Raises:
        ArgumentError: a file is missing.
        CheckpointCorruptError: a file cannot be read, such as an incomplete download.
    """
    place = Path(directory)
    config = BertConfig.from_pretrained(place)
    tensors = _unprefixed(read_tensors(place), config.architecture)
    found: dict[str, np.ndarray] = {}
    for name, foreign in hugging_face_names(config).items():
        array = tensors.pop(foreign.name, None)
        if array is not None:
            found[name] = np.ascontiguousarray(array.T) if foreign.transposed else array
    return {**found, **tensors}


def save_pretrained(
    directory: str | os.PathLike[str],
    variables: Mapping[str, np.ndarray],
    config: BertConfig,
    *,
    labels: Sequence[str] | None = None,
    regression: bool = False,
    tokenizer: str | os.PathLike[str] | None = None,
    do_lower_case: bool | None = None,
) -> str:
    """Writes weights as a Hugging Face directory, which transformers can load, and returns its path.

    Args:
        directory: the directory, which is created if necessary.
        variables: the variables by the names of google-research (`estimator.variables`). Slots are ignored. If the
            model keeps averages (`ema_decay`), these are written, because evaluation uses them.
        config: the shape of the encoder.
        labels: the names of the classes.
        regression: whether the output is a number.
        tokenizer: a directory whose tokenizer files are copied, or a vocab.txt or tokenizer.json.
        do_lower_case: whether the model of a vocab.txt is uncased. transformers reads it from tokenizer_config.json.
            None: it is not written.

    Raises:
        ArgumentError: variables are missing.
    """
    from safetensors.numpy import save_file

    named = hugging_face_names(config)
    missing = sorted(set(named) - set(variables))
    if missing:
        raise ArgumentError(
            f"These variables are missing, so no model can be written: {', '.join(missing[:5])}"
            f"{' and more' if len(missing) > 5 else ''}. Use the configuration that belongs to the weights."
        )
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    values = with_averages(variables)
    tensors = {
        foreign.name: np.ascontiguousarray(values[name].T if foreign.transposed else values[name])
        for name, foreign in named.items()
    }
    save_file(tensors, place / WEIGHTS, metadata={"format": "pt"})
    described = _described(config, values[OUTPUT_WEIGHTS].shape[0], labels, regression)
    (place / "config.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    if tokenizer is not None:
        _copy_tokenizer(Path(tokenizer), place)
    if do_lower_case is not None:
        told = {"do_lower_case": do_lower_case, "tokenizer_class": "BertTokenizer"}
        (place / TOKENIZER_CONFIG).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    return os.fspath(directory)


def _described(config: BertConfig, outputs: int, labels: Sequence[str] | None, regression: bool) -> dict[str, Any]:
    names = list(labels) if labels is not None else [f"LABEL_{index}" for index in range(outputs)]
    if len(names) != outputs:
        raise ArgumentError(f"There are {len(names)} labels for {outputs} outputs.")
    kind = "regression" if regression else "single_label_classification"
    return {
        **config.to_dict(),
        "architectures": ["AlbertForSequenceClassification" if config.is_albert else "BertForSequenceClassification"],
        "id2label": {str(index): name for index, name in enumerate(names)},
        "label2id": {name: index for index, name in enumerate(names)},
        "problem_type": kind,
    }


def _copy_tokenizer(source: Path, target: Path) -> None:
    for file in [source / name for name in TOKENIZER_FILES] if source.is_dir() else [source]:
        copy = target / ("vocab.txt" if file.suffix == ".txt" else file.name)
        if file.is_file() and file.resolve() != copy.resolve():
            shutil.copyfile(file, copy)


def read_tensors(place: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of a Hugging Face directory under their own names.

    Raises:
        ArgumentError: a file is missing, names code, or has a dtype that numpy does not have.
        CheckpointCorruptError: a file cannot be read.
    """
    return {name: array for part in _files(place) for name, array in _read_file(part).items()}


def tensor_names(place: Path) -> frozenset[str]:
    """Returns the names of the arrays of a Hugging Face directory. Arrays of safetensors files are not read.

    Raises:
        ArgumentError: a file is missing, or names code.
        CheckpointCorruptError: a file cannot be read.
    """
    names = (read_torch_file(part) if part.suffix == ".bin" else _dtypes(part) for part in _files(place))
    return frozenset(name for some in names for name in some)


def _files(place: Path) -> list[Path]:
    for weights, index in ((WEIGHTS, INDEX), (OLD_WEIGHTS, OLD_INDEX)):
        if (place / weights).is_file():
            return [place / weights]
        if (place / index).is_file():
            return _parts(place, place / index)
    raise ArgumentError(f"There are no weights in {place}: neither {WEIGHTS} nor {INDEX}, nor {OLD_WEIGHTS}.")


def _parts(place: Path, index: Path) -> list[Path]:
    try:
        parts = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, OSError) as error:
        raise CheckpointCorruptError(f"{index} cannot be read: {error!r}. Download it again.") from error
    missing = [part for part in parts if not (place / part).is_file()]
    if missing:
        raise ArgumentError(f"{index} names files that do not exist: {', '.join(missing)}. Download them.")
    return [place / part for part in parts]


def _read_file(path: Path) -> dict[str, np.ndarray]:
    if path.suffix == ".bin":
        return read_torch_file(path)
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise _incomplete(path, error) from error
    except (AttributeError, KeyError) as error:  # numpy has no such dtype
        # an old safetensors does not read BF16
        name, dtype = min(_dtypes(path).items(), key=lambda one: (one[1] in _READ, one[1] != "BF16"))
        raise ArgumentError(
            f"{path}: the array {name!r} is of dtype {dtype}, which numpy does not support. Save the model again with "
            "bfloat16 or float32."
        ) from error


def _dtypes(path: Path) -> dict[str, str]:
    """Returns the names of the arrays of a safetensors file and their dtypes, from its header."""
    try:
        with path.open("rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        return {name: one["dtype"] for name, one in header.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, MemoryError) as error:
        raise _incomplete(path, error) from error


def _incomplete(path: Path, error: Exception) -> CheckpointCorruptError:
    size = path.stat().st_size
    return CheckpointCorruptError(
        f"{path} ({size} bytes) is not a complete safetensors file: {error}. Download it again."
    )


def _unprefixed(tensors: Mapping[str, np.ndarray], architecture: str) -> dict[str, np.ndarray]:
    """Renames arrays to the names of a classifier: a bare encoder has no prefix, and old files use gamma and beta."""
    renamed: dict[str, np.ndarray] = {}
    bare = not any(name.startswith(f"{architecture}.") for name in tensors)
    for name, array in tensors.items():
        new = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        if bare and name.split(".")[0] in ("embeddings", "encoder", "pooler"):
            new = f"{architecture}.{new}"
        renamed[new] = array
    return renamed
