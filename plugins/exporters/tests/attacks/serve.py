"""A server process that a test attacks: `python serve.py LIMITS [NAME=DIRECTORY...]` prints its port.

It ends when its standard input ends. DIRECTORY holds exports that are served beside models that are functions.
"""

import json
import sys

import numpy as np

from estimator_core.export import Feature
from estimator_exporters.serving.heap import return_large_memory
from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.repository import sources_of
from plugins.exporters.tests.live_server import echo, function_model, running

WIDE = 2**21


def wide(arrays):
    return {"y": np.ones((len(arrays["x"]), WIDE), np.float32)}


if __name__ == "__main__":
    models = {"echo": {"1": echo("float32")}, "text": {"1": echo("string", (None,))}}
    large = function_model(wide, {"x": Feature((None, 2))}, {"y": Feature((None, WIDE))})
    models["wide"] = {"1": large}
    sys.setswitchinterval(2e-4)  # as `serve` does. The next line does, too.
    return_large_memory()
    with running(models, sources_of(sys.argv[2:]), Limits(**json.loads(sys.argv[1]))) as server:
        print(server.port, flush=True)
        sys.stdin.read()
