"""`HostTransform`: transforms batches on the host, identically in training and serving, and is saved as files."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from estimator_core._inputs.input_fn import InputFn, WrappedInput, check_input_fn
from estimator_core._inputs.leaves import as_array, is_text_list
from estimator_core._inputs.normalise import split_element
from estimator_core._types import PyTree
from estimator_core.errors import ArgumentTypeError, ExportError, InputError

#: The name of a features or labels array that is not in a dict.
FEATURES, LABELS = "features", "labels"


@runtime_checkable
class HostTransform(Protocol):
    """Transforms batches of numpy arrays on the host.

    A transform is saved as data, not code. `config` and `files` are the arguments that recreate it. Its class is found
    by `name`, as a plugin component of kind "transform". So an export can contain it, and any machine with its package
    can load it.

    Example:
        >>> class Lower:
        ...     name, version = "lower", 1
        ...
        ...     def __init__(self, feature):
        ...         self.feature = feature
        ...
        ...     def config(self):
        ...         return {"feature": self.feature}
        ...
        ...     @property
        ...     def files(self):
        ...         return {}
        ...
        ...     def apply(self, batch):
        ...         return {**batch, self.feature: np.char.lower(batch[self.feature])}
        >>> isinstance(Lower("text"), HostTransform)
        True
    """

    @property
    def name(self) -> str:
        """The name of the component: lower-case words joined by underscores."""
        ...

    @property
    def version(self) -> int:
        """Increases when the meaning of `config` or the results of `apply` change.

        Other versions refuse the saved data.
        """
        ...

    def config(self) -> Mapping[str, Any]:
        """Returns the arguments that recreate the transform, as JSON values."""
        ...

    @property
    def files(self) -> Mapping[str, Path]:
        """The paths of arguments that are files, such as a vocabulary, by argument name."""
        ...

    def apply(self, batch: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Returns the transformed batch: arrays by name whose first axis is the example.

        `batch` and its arrays do not change.
        """
        ...


def with_transforms(
    input_fn: InputFn, *, features: Sequence[HostTransform] = (), labels: Sequence[HostTransform] = ()
) -> WrappedInput:
    """Returns an input_fn whose batches are transformed on the host, in the input thread.

    Args:
        input_fn: the input to transform. The new input has its position.
        features: transforms of the features, in order. An array that is not in a dict has the name "features".
        labels: transforms of the labels, in order. An array that is not in a dict has the name "labels".

    Raises:
        ArgumentTypeError: input_fn is not callable, or an item is not a HostTransform.
        InputError: input_fn requires an unknown argument.

    Example:
        >>> from estimator_core._inputs.arrays import numpy_input_fn
        >>> class Length:
        ...     name, version, files = "length", 1, {}
        ...
        ...     def config(self):
        ...         return {}
        ...
        ...     def apply(self, batch):
        ...         return {"length": np.char.str_len(batch["text"])}
        >>> words = numpy_input_fn({"text": np.array(["a", "bcd"])}, batch_size=2, shuffle=False)
        >>> next(iter(with_transforms(words, features=[Length()])()))["length"].tolist()
        [1, 3]
    """
    check_input_fn(input_fn)
    for transform in (*features, *labels):
        if not isinstance(transform, HostTransform):
            raise ArgumentTypeError(
                f"{transform!r} is not a HostTransform: it needs name, version, config(), files and apply(batch)."
            )
    return WrappedInput(input_fn=input_fn, convert=_converter(tuple(features), tuple(labels)))


def apply_transforms(transforms: Sequence[HostTransform], batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Applies all `transforms` to `batch`, in order.

    Raises:
        InputError: a transform refuses the batch, fails, or does not return a dict of arrays.
    """
    result: Mapping[str, np.ndarray] = batch
    for transform in transforms:
        try:
            result = transform.apply(result)
        except InputError:  # its message names the fault and the row
            raise
        except Exception as error:
            raise InputError(
                f"The host transform '{transform.name}' failed on a batch of {_shapes(result)}: {error!r}."
            ) from error
        if not isinstance(result, Mapping) or not all(isinstance(a, np.ndarray) for a in result.values()):
            raise InputError(
                f"The host transform '{transform.name}' must return a dict of numpy arrays, got: {result!r:.200}."
            )
    return dict(result)


def _converter(features: tuple[HostTransform, ...], labels: tuple[HostTransform, ...]) -> Callable[[PyTree], PyTree]:
    def convert(element: PyTree) -> PyTree:
        some_features, some_labels = split_element(element)
        some_features = _through(features, some_features, FEATURES)
        if some_labels is None:
            return some_features
        return some_features, _through(labels, some_labels, LABELS)

    return convert


def _through(transforms: tuple[HostTransform, ...], tree: PyTree, bare: str) -> PyTree:
    """Applies `transforms` to `tree`. An array outside a dict has the name `bare`."""
    if not transforms:
        return tree
    named: Mapping[str, Any] = tree if isinstance(tree, Mapping) else {bare: tree}
    arrays = {
        name: jax.tree.map(partial(as_array, name=name), value, is_leaf=is_text_list) for name, value in named.items()
    }
    result = apply_transforms(transforms, arrays)
    return result[bare] if not isinstance(tree, Mapping) and set(result) == {bare} else result


def _shapes(batch: Mapping[str, object]) -> str:
    return ", ".join(
        f"{name} {getattr(value, 'dtype', '')}{getattr(value, 'shape', '')}" for name, value in batch.items()
    )


#: The index of a directory of transforms.
INDEX = "transforms.json"


def save_transforms(transforms: Sequence[HostTransform], directory: str | Path) -> None:
    """Writes `transforms` and copies of their files into `directory`, which is created.

    Raises:
        ExportError: a configuration is not JSON, or a file is missing.

    Example:
        >>> import tempfile
        >>> save_transforms([], tempfile.mkdtemp())
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    entries = [_written(transform, index, directory) for index, transform in enumerate(transforms)]
    (directory / INDEX).write_text(
        json.dumps({"transforms": entries}, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )


def load_transforms(
    directory: str | Path, lookup: Callable[[str], Callable[..., HostTransform]]
) -> list[HostTransform]:
    """Reads the transforms that `save_transforms` wrote. It runs only the code of the classes from `lookup`.

    Args:
        directory: the directory to which they were written.
        lookup: a function from the name of a transform to its class, such as `lambda name: plugins.get("transform",
            name)`.

    Raises:
        ExportError: the directory has no transforms, a file is damaged, or a class has another version.
    """
    directory = Path(directory)
    try:
        entries: list[dict[str, Any]] = json.loads((directory / INDEX).read_text(encoding="utf-8"))["transforms"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExportError(f"{directory} holds no host transforms that can be read: {error!r}.") from error
    return [_read(entry, directory, lookup) for entry in entries]


def _written(transform: HostTransform, index: int, directory: Path) -> dict[str, Any]:
    what = f"The host transform '{transform.name}'"
    config = dict(transform.config())
    try:
        json.dumps(config, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ExportError(f"{what} has a configuration that is not JSON ({error}): {config!r}.") from error
    files: dict[str, dict[str, str]] = {}
    for argument, path in transform.files.items():
        target = Path(f"{index}_{transform.name}") / argument / Path(path).name
        (directory / target).parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(path, directory / target)
        except OSError as error:
            raise ExportError(f"{what} names a file that cannot be copied: {argument} ({error}).") from error
        files[argument] = {"path": target.as_posix(), "sha256": _sha256(directory / target)}
    return {"name": transform.name, "version": transform.version, "config": config, "files": files}


def _read(
    entry: dict[str, Any], directory: Path, lookup: Callable[[str], Callable[..., HostTransform]]
) -> HostTransform:
    name, what = entry["name"], f"The host transform '{entry['name']}'"
    factory = lookup(name)
    version = getattr(factory, "version", None)
    if version != entry["version"]:
        raise ExportError(
            f"{what} was saved by version {entry['version']} and the installed package has version {version}. "
            "Install the package the export was made with, or export again."
        )
    files = {argument: _checked_file(what, saved, directory) for argument, saved in entry["files"].items()}
    try:
        return factory(**entry["config"], **files)
    except Exception as error:
        raise ExportError(f"{what} cannot be made from {entry['config']!r}: {error!r}.") from error


def _checked_file(what: str, saved: dict[str, str], directory: Path) -> Path:
    path = directory / saved["path"]
    if not path.resolve().is_relative_to(directory.resolve()):
        raise ExportError(f"{what} names a file outside its directory: {saved['path']!r}.")
    if not path.is_file() or _sha256(path) != saved["sha256"]:
        raise ExportError(f"{what} has a file that is missing or damaged: {path}. Copy the export again.")
    return path


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
