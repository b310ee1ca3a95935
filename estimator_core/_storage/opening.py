"""Opens the storage of a path or URL. The scheme selects the component."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from estimator_core import _moved
from estimator_core._files import located, scheme_of
from estimator_core._plugins import Plugins, plugins_in_use
from estimator_core._plugins.discovery import note_origin
from estimator_core._storage.contract import Storage, StorageError, StorageGoneError
from estimator_core._storage.local import LocalStorage
from estimator_core.errors import ArgumentError, PluginLookupError

#: A URL without bucket and path. Callers may have removed the slashes from its end.
_NO_PLACE = re.compile(r"(?i:file://localhost|[a-z][a-z0-9+.-]*:)/*")
#: The host of a `file:` URL if it is not this one, and the path.
_OF_FILE = re.compile(r"(?i:file):(?=/)(?://(?i:localhost(?=/))?([^/~]*))?([/~].*|)", re.DOTALL)


def open_storage(location: str | os.PathLike[str], plugins: Plugins | None = None, *, make: bool = True) -> Storage:
    """Opens the storage at a path of this machine, or at a URL.

    Args:
        location: a directory, or `scheme://…`.
        plugins: the registry of components of kind `storage`. The name is the scheme, with `_` for `+`, `-` and `.`.
            The component is called with the URL and the options of its plugin. Default: the installed plugins.
        make: whether to create a missing directory of this machine. Readers should not create it.

    Raises:
        ArgumentError: no installed package supports the scheme. The message names a package that does, and the
            supported schemes. Or the URL has no path, or names a file of another host.
        StorageGoneError: the directory does not exist and `make` is false.
        StorageError: the storage cannot be opened.

    Example:
        >>> import tempfile
        >>> list(open_storage(tempfile.mkdtemp()).list(""))
        []
    """
    text = located(location)
    scheme = scheme_of(text)
    if scheme in ("", "file"):
        path = Path(_place(text)).expanduser()
        if not make and not path.is_dir():
            raise StorageGoneError(f"There is no directory {path}.")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{path} cannot be used as a directory: {error.strerror}.") from error
        return LocalStorage(path)
    name, found = _served(scheme, plugins)
    label = found.find("storage", name).describe()
    try:
        made: Any = found.make("storage", name, text, options=found.options("storage", name))
    except TypeError as error:
        error.add_note(f"{label} is called with a URL and options=")
        raise
    told: Any = _OfPlugin(made, label)
    return told


#: The type of the answer of each method. `put_stream` is absent, because its chunks may fail for reasons of the caller.
_ANSWERS = {
    "put_new": (object, ""),
    "put": (object, ""),
    "get": (bytes | bytearray, "bytes"),
    "get_ranges": (Iterable, "a list of bytes"),
    "list": (Iterable, "an iterator of Entry"),
    "now": (int | float, "the Unix time"),
    "delete": (object, ""),
}


class _OfPlugin:
    """A storage whose unexpected errors and wrong answers name its plugin."""

    def __init__(self, storage: Any, label: str) -> None:
        self._storage, self._label = storage, label
        self.put_stream, self.close = storage.put_stream, storage.close
        vars(self).update({name: self._named(name) for name in _ANSWERS})

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_storage"], name)

    @property
    def url(self) -> str:
        return self._storage.url

    def _named(self, name: str) -> Callable[..., Any]:
        member, (wanted, words), label = getattr(self._storage, name), _ANSWERS[name], self._label

        def call(*arguments: Any, **named: Any) -> Any:
            try:
                answer = member(*arguments, **named)
            except StorageError:  # names the storage and the key
                raise
            except Exception as error:
                note_origin(error, f"in {name}{arguments!r:.100} of {label}")
                raise
            if not isinstance(answer, wanted):
                told = f"{name}{arguments!r:.100} returned {answer!r:.100}; it must return {words}"
                raise StorageError(f"{label}: {told}. Upgrade its package.")
            return answer

        return call


def at_url(location: str, plugins: Plugins | None) -> Any:
    """Returns the functions that work with a URL.

    They are attributes of its package, with the names of the functions here.

    Args:
        location: the URL.
        plugins: the registry that provides the storage. Default: the installed plugins.

    Raises:
        ArgumentError: no installed package supports the scheme, or the package that works with URLs is missing or must
            not be loaded. The message names it. Or the URL has no path, or names a file of another host.
    """
    scheme = scheme_of(location)
    _place(location)
    if scheme != "file":
        _served(scheme, plugins)
    for record in (plugins or plugins_in_use()).records():
        if record.owner == _moved.AT_URLS[1] and not record.usable:
            raise ArgumentError(f"{location} needs {record.label}, which is not in use: {record.error}")
    try:
        return _moved.import_moved(*_moved.AT_URLS, f"Reading and writing at {scheme}://")
    except ModuleNotFoundError as error:
        raise ArgumentError(str(error)) from error


def _place(location: str) -> str:
    """Returns the path of a `file:` URL, or any other location unchanged.

    Raises:
        ArgumentError: the URL has no path, or names another host.
    """
    if _NO_PLACE.fullmatch(location):
        scheme = location.partition(":")[0]
        told = f"{scheme}:// names no bucket and no directory: write one after it."
        raise ArgumentError(f"{told} A directory named '{scheme}:' needs its absolute path.")
    match = _OF_FILE.fullmatch(location)
    if match and match[1]:
        raise ArgumentError(f"{location} names the host {match[1]!r}, but file:// is for this machine: file:///PATH.")
    return match[2] if match else location


def _served(scheme: str, plugins: Plugins | None) -> tuple[str, Plugins]:
    """Returns the name of the component for a scheme, and the registry that has it.

    Raises:
        ArgumentError: no component supports the scheme, or several do.
    """
    name, found = re.sub("[-+.]", "_", scheme), plugins or plugins_in_use()
    try:
        found.get("storage", name)
    except PluginLookupError as error:
        names = ["file", *found.names("storage")]
        if several := [one for one in names if one.endswith(f":{name}")]:
            raise ArgumentError(
                f"several packages provide storage for {scheme}://: {', '.join(several)}. Block all but one by name, "
                f"or let the policy choose: storage.{name} = {several[0].partition(':')[0]!r}."
            ) from error
        from estimator_core._plugins.not_found import explain_source

        known = ", ".join(f"{one}://" for one in names).replace("_", "-") + ". For a directory, give its absolute path."
        told = f"no installed package provides storage for {scheme}://. Known schemes: {known}"
        raise ArgumentError("\n  ".join([told, *explain_source("storage", name, found.records())])) from error
    return name, found
