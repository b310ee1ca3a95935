"""Class names in predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_heads.vocabulary import Vocabulary


class ClassNames:
    """Adds class names to predictions and exported outputs that hold class ids.

    Args:
        names: the class names, in the order of their ids.
        keys: for each key of ids the key of the names it gives.
        head: the head inside a MultiHead: keys are then `(head, key)`, or "head/key" in exports.

    Example:
        >>> import numpy as np
        >>> transform = ClassNames(["cat", "dog"], {"class_ids": "classes"})
        >>> transform.apply({"class_ids": np.array([[1], [0]])})["classes"].tolist()
        [['dog'], ['cat']]
    """

    name = "class_names"
    version = 1

    def __init__(self, names: Sequence[str], keys: Mapping[str, str], head: str | None = None) -> None:
        self._vocabulary = Vocabulary(list(names), "names")
        self._keys = dict(keys)
        self._head = head

    def config(self) -> dict[str, Any]:
        """The arguments."""
        return {"names": list(self._vocabulary.names), "keys": self._keys, "head": self._head}

    @property
    def files(self) -> Mapping[str, Path]:
        """None."""
        return {}

    def apply(self, batch: Mapping[Any, np.ndarray[Any, Any]]) -> dict[Any, np.ndarray[Any, Any]]:
        """The predictions and the names of those ids among them.

        Ids that already lie under a key of names, as in an exported classification, are replaced.
        """
        found: dict[Any, np.ndarray[Any, Any]] = dict(batch)
        for ids, names in self._keys.items():
            for ids_key, names_key in self._spellings(ids, names):
                source = ids_key if ids_key in batch else names_key
                if source in batch and np.issubdtype(batch[source].dtype, np.integer):
                    found[names_key] = self._vocabulary.strings(batch[source])
        return found

    def _spellings(self, ids: str, names: str) -> list[tuple[Any, Any]]:
        if self._head is None:
            return [(ids, names)]
        return [((self._head, ids), (self._head, names)), (f"{self._head}/{ids}", f"{self._head}/{names}")]
