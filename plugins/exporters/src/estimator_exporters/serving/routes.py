"""The model that a request path names, and the form of the request."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from estimator_exporters.serving.calls import Form, open_inference
from estimator_exporters.serving.tensorflow_form import VERBS, tensorflow_form

_V2, _V1, _INFER, _VERSIONS = "/v2/models/", "/v1/models/", "/infer", "/versions/"


@dataclass(frozen=True, kw_only=True)
class Route:
    """The meaning of a request path.

    Attributes:
        name: the name of the model.
        version: the version of the model. None: the newest.
        form: the form of the request.
    """

    name: str
    version: str | None
    form: Form


@functools.lru_cache(128)
def route_of(path: str) -> Route | None:
    """Returns the route of a path, or None if the path does not run a model.

    Example:
        >>> route = route_of("/v2/models/m/versions/3/infer")
        >>> route.name, route.version
        ('m', '3')
    """
    if path.startswith(_V2) and path.endswith(_INFER):
        name, _, version = path[len(_V2) : -len(_INFER)].partition(_VERSIONS)
        return Route(name=name, version=version or None, form=open_inference(name))
    if path.startswith(_V1):
        model, _, verb = path[len(_V1) :].rpartition(":")
        if verb in VERBS:
            name, _, version = model.partition(_VERSIONS)
            return Route(name=name, version=version or None, form=tensorflow_form(name, verb))
    return None
