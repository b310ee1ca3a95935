"""A plugin of the tests. `shelf:///path` is a directory of this machine that is accessed like an object store."""

from pathlib import Path

from estimator_core.plugins import Component, hookimpl
from estimator_core.storage import LocalStorage

ESTIMATOR_PLUGIN_API = (1, 1)
PREFIX = "shelf://"


class Shelf(LocalStorage):
    """A storage of objects in a directory, with the URL of the shelf."""

    def __init__(self, url: str, *, options: object = None) -> None:
        self._shelf_url = url
        root = Path(url.removeprefix(PREFIX))
        root.mkdir(parents=True, exist_ok=True)
        super().__init__(root)

    @property
    def url(self) -> str:
        return self._shelf_url


@hookimpl
def estimator_components():
    target = "plugins.storage.tests.remote.shelves:Shelf"
    return [Component(kind="storage", name="shelf", target=target, summary="Of the tests.")]
