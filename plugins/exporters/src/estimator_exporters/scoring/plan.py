"""A scoring as every process of it is told: the export, the signature, how files are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import estimator_core as ec
from estimator_core.errors import ArgumentError
from estimator_core.export import LoadedSignature
from estimator_exporters.scoring.read import Reading


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a process that scores needs to know; it can be pickled.

    Attributes:
        export: one export, by its path or URL.
        signature: its name.
        reading: of files.
    """

    export: str
    signature: str
    reading: Reading

    def opened(self) -> LoadedSignature:
        """The signature, loaded in this process.

        Raises:
            ArgumentError: the signature does not exist.
            ExportError: the export cannot be read.
        """
        return signature_of(ec.export.load(self.export), self.signature)


def signature_of(loaded: Any, name: str) -> LoadedSignature:
    """What clients call by a name.

    Raises:
        ArgumentError: there is no such signature; names those that are there.
    """
    signatures = loaded.raw_signatures
    if name not in signatures:
        raise ArgumentError(f"There is no signature {name!r}. Signatures: {sorted(signatures)}.")
    return signatures[name]
