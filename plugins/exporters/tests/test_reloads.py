"""Memory over many reloads stays flat; a version that is gone takes its statistics with it."""

import asyncio
import gc
import shutil
import threading
import weakref
from pathlib import Path

import numpy as np

from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.repository import sources_of
from estimator_exporters.serving.server import new_engine
from plugins.exporters.tests.live_server import SIZES

FIRST = 1_700_000_000


def test_a_model_that_was_exchanged_is_freed(export, tmp_path):
    async def main():
        path = Path(shutil.copytree(export, tmp_path / f"{FIRST}"))
        engine = new_engine(sources_of([f"m={tmp_path}"]), SIZES, 1, Limits())
        await engine.repository.refresh()
        old = []
        for number in range(FIRST + 1, FIRST + 4):
            model = engine.repository.get("m", None)[1]
            await model.infer({"x": np.ones((1, 3), np.float32)})
            old.append(weakref.ref(model))
            del model
            path = path.rename(tmp_path / f"{number}")
            await engine.repository.refresh()
        loading = {thread.name for thread in threading.enumerate() if thread.name.startswith("decode")}
        await engine.repository.close()
        engine.decoding.close()
        return old, loading

    old, loading = asyncio.run(main())
    gc.collect()
    assert [model() for model in old] == [None] * 3
    assert len(loading) == 1, "exports are loaded in one thread: with several, each keeps memory of its own"
