"""The location of the operators of onnxruntime-extensions."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from estimator_core.errors import ExportError
from estimator_exporters.onnx.hashes import PACKAGE

_MODULE, _LIBRARY = "onnxruntime_extensions", "_extensions_pydll*"


def library() -> str:
    """Returns the library that a session registers.

    The package is not imported, because that changes protobuf settings.

    Raises:
        ExportError: the package is not installed.
    """
    found = importlib.util.find_spec(_MODULE)
    places = (found.submodule_search_locations if found is not None else None) or []
    for path in (path for place in places for path in sorted(Path(place).glob(_LIBRARY))):
        return str(path)
    raise ExportError(
        f"Hash buckets, crosses of text and hashes of unknown words need {PACKAGE} in an ONNX graph, which is not "
        "installed. Install it: pip install 'estimator-exporters[onnx-hashes]'. Or use a vocabulary, or the format "
        "'saved_model' or 'stablehlo'."
    )
