"""The reader of configuration files and the files that they include."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from estimator_core.errors import did_you_mean
from estimator_runs.configuration.layers import Layer, Origin
from estimator_runs.configuration.problems import refused
from estimator_runs.configuration.toml import read_toml
from estimator_runs.configuration.yaml import read_yaml

_READERS = {".toml": read_toml, ".yaml": read_yaml, ".yml": read_yaml}


def read_layers(path: Path) -> list[Layer]:
    """Returns the layers of a file: those of the included files in their order, and last its own.

    Args:
        path: the path of a TOML or YAML file. `include` in it is a file or a list of them, relative to it.

    Raises:
        ConfigurationError: a file is missing or broken, or includes itself.
    """
    return _read(path, str(path), (), None)


def _read(path: Path, name: str, outer: tuple[Path, ...], named_at: Origin | None) -> list[Layer]:
    origin = named_at or Origin(source=name)
    whole = path.resolve()
    if whole in outer:
        chain = " includes ".join(each.name for each in (*outer[outer.index(whole) :], whole))
        raise refused(origin, f"{chain}. Remove one of them.")
    if path.suffix not in _READERS:
        raise refused(origin, f"{name!r} is not a configuration file: they end with {', '.join(_READERS)}.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except IsADirectoryError:
        raise refused(origin, f"{name!r} is a directory, not a file.") from None
    except (FileNotFoundError, NotADirectoryError):
        beside = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        raise refused(origin, f"there is no file {name!r}.{did_you_mean(path.name, beside)}") from None
    except UnicodeDecodeError as error:
        raise refused(origin, f"{name!r} is not written in UTF-8: byte {error.start} cannot be read.") from None
    try:
        layer = _READERS[path.suffix](text, name, path.parent)
    except RecursionError:
        raise refused(Origin(source=name), "a value is nested too deeply.") from None
    included = _included(layer)
    layers = [
        found
        for place, other in enumerate(included)
        for found in _read(
            path.parent / other,
            str(path.parent / other),
            (*outer, whole),
            layer.origins.get(("include", place)) or layer.origins[("include",)],
        )
    ]
    own = {key: value for key, value in layer.values.items() if key != "include"}
    return [*layers, Layer(whole=layer.whole, values=own, origins=layer.origins)]


def _included(layer: Layer) -> Sequence[str]:
    said: Any = layer.values.get("include", [])
    files = [said] if isinstance(said, str) else said
    if not isinstance(files, list) or not all(isinstance(each, str) for each in files):
        raise refused(layer.origins[("include",)], "include: must be a file or a list of files.")
    return files
