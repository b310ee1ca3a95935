"""The initial values of variables from a directory of transformers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import jax
import numpy as np

from estimator_canned_bert.config import ARCHITECTURES, CONFIG_FILES, BertConfig
from estimator_canned_bert.weights.hugging_face import read_hugging_face, read_tensors, tensor_names
from estimator_core.errors import ArgumentError, CheckpointCorruptError
from estimator_core.model import InitialValue, VariableSpec
from estimator_warm_start import WarmStartSettings

#: The names of arrays that identify an architecture, with or without its prefix.
_NAMES = {
    "bert": re.compile(r"(bert\.)?encoder\.layer\.\d+\.attention\.self\.query\."),
    "albert": re.compile(r"(albert\.)?encoder\.albert_layer_groups\.\d+\."),
}


class TransformersCheckpoint:
    """The initial values of the variables that a directory of transformers has.

    BERT and ALBERT have the names of google-research, as the models of this package do. Arrays of other architectures
    keep their names and their axes.

    Args:
        path: the directory, or the file of the weights in it.

    Example:
        >>> TransformersCheckpoint("bert-base-uncased").path
        'bert-base-uncased'
    """

    title = "transformers"
    conversion = "a directory of transformers has only weights, no slots and no step"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def initial_values(
        self, specs: Mapping[str, VariableSpec], key: Callable[[str], jax.Array]
    ) -> Mapping[str, InitialValue]:
        """Returns the values of the variables that the directory has."""
        return WarmStartSettings(self.path, reader=TransformersCheckpoint.load).initial_values(specs, key)

    @staticmethod
    def load(path: str) -> dict[str, np.ndarray]:
        """Returns all arrays of the directory by name.

        Raises:
            ArgumentError: there are no weights, they name code, or they have no configuration.
            CheckpointCorruptError: a file is damaged or incomplete.
        """
        place = Path(path) if Path(path).is_dir() else Path(path).parent
        return read_hugging_face(place) if _architecture(place) in ARCHITECTURES else read_tensors(place)


def _architecture(place: Path) -> str | None:
    """Returns the `model_type` of a configuration. Without one, the names of arrays decide.

    None means another architecture.

    Raises:
        ArgumentError: the names are those of BERT or ALBERT, and the configuration is missing or of the other
            architecture.
    """
    given = next((kind for name in CONFIG_FILES if (kind := _model_type(place / name)) is not None), None)
    named = None if given is not None else _named(tensor_names(place))
    if named is not None and (described := BertConfig.from_pretrained(place).architecture) != named:
        raise ArgumentError(
            f"{place}: the configuration describes {described}, but the arrays have the names of {named}. Write "
            f'"model_type": "{named}" into it, or use the configuration that belongs to the weights.'
        )
    return given or named


def _model_type(file: Path) -> str | None:
    try:
        return json.loads(file.read_text(encoding="utf-8")).get("model_type") if file.is_file() else None
    except (ValueError, AttributeError, OSError) as error:
        raise CheckpointCorruptError(f"{file} cannot be read: {error!r}. Download it again.") from error


def _named(names: frozenset[str]) -> str | None:
    return next((kind for kind, form in _NAMES.items() if any(form.match(name) for name in names)), None)
