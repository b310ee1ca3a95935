"""The description of a scoring that every process receives: the export, the signature, and how files are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.export import LoadedSignature
from estimator_exporters.scoring.read import Reading


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The settings that a scoring process needs. It can be pickled.

    Attributes:
        export: the path or URL of one export.
        signature: the name of the signature.
        reading: the settings for reading files.
    """

    export: str
    signature: str
    reading: Reading

    def opened(self) -> LoadedSignature:
        """Loads the signature in this process.

        Raises:
            ArgumentError: the signature does not exist.
            ExportError: the export cannot be read.
        """
        return signature_of(ec.export.load(self.export), self.signature)


def signature_of(loaded: Any, name: str) -> LoadedSignature:
    """Returns the signature that clients call by a name.

    Raises:
        ArgumentError: there is no such signature. The message names the existing ones.
    """
    signatures = loaded.raw_signatures
    if name not in signatures:
        raise ArgumentError(f"There is no signature {name!r}. Signatures: {sorted(signatures)}.")
    return signatures[name]
