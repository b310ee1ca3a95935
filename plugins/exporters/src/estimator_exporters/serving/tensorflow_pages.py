"""Status and metadata of models in the REST form of TensorFlow Serving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from estimator_core.export import Feature
from estimator_exporters.serving.models import ServedModel
from estimator_exporters.serving.pages import answered
from estimator_exporters.serving.refusals import NotFoundError
from estimator_exporters.serving.repository import Repository

_TYPES = {
    "bool": "DT_BOOL",
    "uint8": "DT_UINT8",
    "uint16": "DT_UINT16",
    "uint32": "DT_UINT32",
    "uint64": "DT_UINT64",
    "int8": "DT_INT8",
    "int16": "DT_INT16",
    "int32": "DT_INT32",
    "int64": "DT_INT64",
    "float16": "DT_HALF",
    "bfloat16": "DT_BFLOAT16",
    "float32": "DT_FLOAT",
    "float64": "DT_DOUBLE",
    "string": "DT_STRING",
}


def tensorflow_routes(repository: Repository) -> Sequence[Route]:
    """Returns the routes of `GET /v1/models/NAME[/versions/VERSION][/metadata]`."""

    def signatures(name: str, version: str | None) -> tuple[Mapping[str, str], Mapping[str, ServedModel]]:
        """Returns the states of the versions, and the signatures of the requested version or of the newest one."""
        repository.check(name, version)
        # NAME:SIGNATURE is a model too. A GET request to NAME:predict also has this form.
        own = {known: models for known, models in repository.models.items() if name in (known, known.split(":")[0])}
        versions = sorted({one for models in own.values() for one in models}, key=lambda one: (len(one), one))
        if version not in (None, *versions):
            raise NotFoundError(f"model {name!r} has no version {version!r}; it has {versions}")
        chosen = version or versions[-1]
        found = {
            known.partition(":")[2] or "serving_default": models[chosen]
            for known, models in own.items()
            if chosen in models
        }
        return dict.fromkeys(versions if version is None else [version], "AVAILABLE"), found

    async def status(request: Request) -> Response:
        async def answer() -> Response:
            states, _ = signatures(request.path_params["model"], request.path_params.get("version"))
            fine = {"error_code": "OK", "error_message": ""}
            return JSONResponse(
                {
                    "model_version_status": [
                        {"version": version, "state": state, "status": fine} for version, state in states.items()
                    ]
                }
            )

        return await answered(answer())

    async def metadata(request: Request) -> Response:
        async def answer() -> Response:
            name = request.path_params["model"]
            states, found = signatures(name, request.path_params.get("version"))
            return JSONResponse(
                {
                    "model_spec": {"name": name, "signature_name": "", "version": [*states][-1]},
                    "metadata": {
                        "signature_def": {"signature_def": {key: _signature(one) for key, one in found.items()}}
                    },
                }
            )

        return await answered(answer())

    one, version = "/v1/models/{model}", "/v1/models/{model}/versions/{version}"
    return [
        Route(f"{version}/metadata", metadata),
        Route(f"{one}/metadata", metadata),
        Route(version, status),
        Route(one, status),
    ]


def _signature(model: ServedModel) -> Mapping[str, object]:
    return {
        "inputs": {name: _tensor(name, feature) for name, feature in model.inputs.items()},
        "outputs": {name: _tensor(name, feature) for name, feature in model.outputs.items()},
        "method_name": f"tensorflow/serving/{model.method}",
    }


def _tensor(name: str, feature: Feature) -> Mapping[str, object]:
    sizes = [{"size": str(-1 if size is None else size), "name": ""} for size in feature.shape]
    return {
        "dtype": _TYPES[str(feature.dtype)],
        "tensor_shape": {"dim": sizes, "unknown_rank": False},
        "name": f"{name}:0",
    }
