"""Memory over many reloads stays flat; a version that is gone takes its statistics with it."""

import asyncio
import gc
import shutil
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.repository import sources_of
from estimator_exporters.serving.server import new_engine
from plugins.exporters.tests.live_server import SIZES

FIRST = 1_700_000_000


def resident():
    gc.collect()
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def reloads(export, base, warm, count):
    """Megabytes before and after `count` reloads, each followed by a request."""

    async def main():
        path = Path(shutil.copytree(export, base / f"{FIRST}"))
        engine = new_engine(sources_of([f"m={base}"]), SIZES, 1, Limits())
        await engine.repository.refresh()
        before = 0.0
        for number in range(FIRST + 1, FIRST + 1 + warm + count):
            path = path.rename(base / f"{number}")
            await engine.repository.refresh()
            version, model = engine.repository.get("m", None)
            assert version == path.name
            assert (await model.infer({"x": np.ones((1, 3), np.float32)}))["logits"].shape == (1, 2)
            if number == FIRST + warm:
                before = resident()
        after = resident()
        metrics = engine.metrics.text().decode()
        assert f'estimator_loads_total{{model="m",result="loaded"}} {warm + count + 1}.0' in metrics
        assert 'estimator_model_versions{model="m"} 1.0' in metrics
        assert list(engine.repository.models["m"]) == [path.name]
        await engine.repository.close()
        engine.decoding.close()
        return before, after

    return asyncio.run(main())


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


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_memory_is_flat_over_500_reloads(export, tmp_path):
    before, after = reloads(export, tmp_path, warm=50, count=450)
    print(f"{before:.1f} MB after 50 reloads, {after:.1f} MB after 500")
    assert after - before < 20, f"{before:.1f} MB after 50 reloads, {after:.1f} MB after 500"
