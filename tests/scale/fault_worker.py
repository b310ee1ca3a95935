"""One process of a run with a fault: `fault_worker.py SETTINGS_JSON`, with the settings of `train_worker.py`.

The setting `fault` selects it. "kill" and "term" send the signal at step `at` in process `who`, "raise" raises there,
and "freeze" stops the process. "end" kills it when the end of the call is about to be recorded.
"""

import json
import logging
import os
import signal
import sys
from typing import Any

from train_worker import run

from estimator_core._loop.result_log import WriterLedger

_SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "freeze": signal.SIGSTOP}


def main(settings: dict[str, Any]) -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    fault, who, at = settings.get("fault"), settings.get("who"), settings.get("at", 0)

    def act(hooked: Any, step: int) -> None:
        if step != at or int(os.environ.get("JAX_PROCESS_ID", "0")) != who:
            return
        if fault == "raise":
            raise RuntimeError("the input of this process broke")
        os.kill(os.getpid(), _SIGNALS[fault])

    if fault == "end":
        if int(os.environ.get("JAX_PROCESS_ID", "0")) == who:
            WriterLedger.end = lambda *arguments, **more: os.kill(os.getpid(), signal.SIGKILL)
        fault = None
    run(settings, act if fault else None)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
