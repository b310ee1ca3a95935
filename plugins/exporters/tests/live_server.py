"""A server in a thread of the test, and requests to it with the standard library."""

import contextlib
import http.client
import json
import threading
import time

import numpy as np
import uvicorn

from estimator_core.export import Feature
from estimator_exporters.bundle.loaded import Signature
from estimator_exporters.serving.access import everybody
from estimator_exporters.serving.app import make_app
from estimator_exporters.serving.batching import unobserved
from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.models import ServedModel
from estimator_exporters.serving.observing import NOBODY
from estimator_exporters.serving.server import configuration, new_engine

SIZES = (1, 2, 4, 8)


def function_model(run, inputs, outputs, observe=unobserved, **more):
    """A model that is a function of arrays."""
    signature = Signature(name="serving_default", method="predict", inputs=inputs, outputs=outputs, run=run, **more)
    return ServedModel(signature, SIZES, observe)


def echo(dtype, shape=(None, 2), **more):
    """A model that returns its inputs."""
    feature = Feature(shape, dtype)
    return function_model(lambda arrays: {"y": arrays["x"]}, {"x": feature}, {"y": feature}, **more)


class Server:
    """The address and the state of a running server."""

    def __init__(self, port, engine, server=None):
        self.port, self.engine, self._server = port, engine, server
        self.repository, self.metrics = engine.repository, engine.metrics

    def stop(self):
        """Starts the shutdown."""
        self._server.should_exit = True

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def request(self, method, path, body=None, headers=None):
        """The status, the headers and the body of an answer. JSON is parsed."""
        connection = self.connect()
        try:
            content = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
            connection.request(method, path, content, headers or {})
            answer = connection.getresponse()
            data = answer.read()
            kind = answer.headers.get("content-type", "")
            return answer.status, answer.headers, json.loads(data) if "json" in kind else data
        finally:
            connection.close()

    def infer(self, model, *, version=None, **arrays):
        """The outputs of a model for arrays of numbers, sent and received as JSON."""
        names = {"float32": "FP32", "int32": "INT32"}
        inputs = [
            {"name": k, "datatype": names[str(v.dtype)], "shape": list(v.shape), "data": v.reshape(-1).tolist()}
            for k, v in arrays.items()
        ]
        path = f"/v2/models/{model}" + (f"/versions/{version}" if version else "")
        status, _, content = self.request("POST", f"{path}/infer", {"inputs": inputs})
        if status != 200:
            return status, content
        return status, {o["name"]: np.array(o["data"]).reshape(o["shape"]) for o in content["outputs"]}


def nothing(engine):
    """Starts nothing in addition to the HTTP server."""
    return contextlib.nullcontext()


@contextlib.contextmanager
def running(
    models=None, sources=(), limits=None, versions=1, access=everybody, tls=None, beside=nothing, observing=NOBODY
):
    """Runs a server of models and sources."""
    engine = new_engine(list(sources), SIZES, versions, limits or Limits(poll_seconds=0.1), access, observing)
    engine.repository.models.update(models or {})
    app = make_app(engine, beside=lambda: beside(engine))
    config = configuration(app, engine, host="127.0.0.1", port=0, **(tls.arguments() if tls else {}))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield Server(server.servers[0].sockets[0].getsockname()[1], engine, server)
    finally:
        server.should_exit = True
        thread.join()
