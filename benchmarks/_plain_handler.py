"""The peer of `estimator serve`: the same protocol and web server, with one call of the function per request."""

import asyncio
import sys

import numpy as np
import uvicorn
from _serving_model import TOKENS
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import estimator_core as ec
from estimator_exporters.serving.protocol import HEADER_LENGTH, build_response, parse_request


def application(path, in_threads):
    """Returns a handler that calls the compiled function, in threads or on the event loop."""
    signature = ec.export.load(path).signatures["serving_default"]
    signature(ids=np.zeros((1, TOKENS), np.int32))

    async def infer(request: Request) -> Response:
        parsed = parse_request(await request.body(), request.headers.get(HEADER_LENGTH))
        if in_threads:
            results = await asyncio.to_thread(lambda: signature(**parsed.inputs))
        else:
            results = signature(**parsed.inputs)
        content, headers = build_response(parsed, "m", "1", results)
        return Response(content, headers=headers)

    async def ready(request: Request) -> Response:
        return Response()

    return Starlette(
        routes=[Route("/v2/models/m/infer", infer, methods=["POST"]), Route("/v2/health/ready", ready)],
    )


if __name__ == "__main__":
    export, port, mode = sys.argv[1:]
    uvicorn.run(application(export, mode == "threads"), port=int(port), log_level="warning", access_log=False)
