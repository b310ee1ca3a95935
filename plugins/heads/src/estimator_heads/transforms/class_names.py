"""The transform that adds class names to predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.export import Feature, HostProgram, NameOf
from estimator_heads.vocabulary import Vocabulary


class ClassNames:
    """Replaces class ids by class names, in predictions and in exported outputs.

    Args:
        names: the class names, in the order of their ids.
        keys: the keys whose ids are replaced by names.
        head: the name of the head inside a MultiHead. Keys are then `(head, key)`, or "head/key" in exports.

    Example:
        >>> import numpy as np
        >>> transform = ClassNames(["cat", "dog"], ["classes"])
        >>> transform.apply({"classes": np.array([[1], [0]])})["classes"].tolist()
        [['dog'], ['cat']]
    """

    name = "class_names"
    version = 1

    def __init__(self, names: Sequence[str], keys: Sequence[str], head: str | None = None) -> None:
        self._vocabulary = Vocabulary(list(names), "names")
        self._keys = tuple(keys)
        self._head = head

    def config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {"names": list(self._vocabulary.names), "keys": list(self._keys), "head": self._head}

    @property
    def files(self) -> Mapping[str, Path]:
        """There are no files."""
        return {}

    def apply(self, batch: Mapping[Any, np.ndarray[Any, Any]]) -> dict[Any, np.ndarray[Any, Any]]:
        """Returns the predictions with names instead of ids. Missing keys are skipped."""
        found: dict[Any, np.ndarray[Any, Any]] = dict(batch)
        for key in self._keys:
            for spelling in [key] if self._head is None else [(self._head, key), f"{self._head}/{key}"]:
                if spelling in batch:
                    found[spelling] = self._vocabulary.strings(batch[spelling])
        return found

    def program(self, features: Mapping[str, Feature]) -> HostProgram:
        """Returns the program of the look-ups for an export, whose output names are joined by "/"."""
        wanted = {key if self._head is None else f"{self._head}/{key}" for key in self._keys}
        named = {key: f"{key} by name" for key in wanted & features.keys()}
        texts = {key: Feature(features[key].shape, "string") for key in named}
        return HostProgram(
            operations=tuple(
                NameOf(input=key, output=value, names=tuple(self._vocabulary.names)) for key, value in named.items()
            ),
            outputs={name: named.get(name, name) for name in features},
            features={**features, **texts},
        )
