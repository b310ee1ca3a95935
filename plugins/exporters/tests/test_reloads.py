"""Memory stays flat over many reloads, and the statistics of a removed version are removed, too."""

import asyncio
import contextlib
import gc
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import jax
import numpy as np
import pytest

import estimator_core as ec
from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.repository import sources_of
from estimator_exporters.serving.server import new_engine
from plugins.exporters.tests.live_server import SIZES
from plugins.exporters.tests.small_model import model_fn, receiver_fn, trained

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
        remembered = [version.name for _, version in engine.repository._loads]
        await engine.repository.close()
        engine.decoding.close()
        return old, loading, remembered

    old, loading, remembered = asyncio.run(main())
    gc.collect()
    assert remembered == [f"{FIRST + 3}"], "a server that runs for months remembers no version that is gone"
    assert [model() for model in old] == [None] * 3
    assert len(loading) == 1, "exports are loaded in one thread: with several, each keeps memory of its own"


def reloaded(export, tmp_path, count):
    """The growth of a process in MB after this many reloads, and the number of programs it holds."""
    shutil.copytree(export, tmp_path / "exports" / f"{FIRST}")
    command = [sys.executable, "-m", "plugins.exporters.tests.attacks.reloading", str(tmp_path / "exports"), str(count)]
    sources = [str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sources)}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    print(found.stdout)
    return json.loads(found.stdout.splitlines()[-1])


@pytest.mark.slow
def test_memory_is_flat_over_60_reloads(export, tmp_path):
    """Without cleaning, jax's caches would hold the program of each version."""
    found = reloaded(export, tmp_path, 60)
    assert found["megabytes"] < 2, found
    assert found["programs"] <= 2, "programs of versions that are gone are held"


@pytest.mark.slow
@pytest.mark.timeout(3600)  # a second each, and many times longer on a busy machine
def test_memory_is_flat_over_500_reloads(export, tmp_path):
    found = reloaded(export, tmp_path, 500)
    assert found["megabytes"] < 2, found
    assert found["programs"] <= 2, found


def test_a_model_that_stays_is_not_compiled_again_when_another_is_exchanged(export, tmp_path):
    async def main():
        for name in ("stays", "goes"):
            shutil.copytree(export, tmp_path / name / f"{FIRST}")
        engine = new_engine(sources_of([f"{name}={tmp_path / name}" for name in ("stays", "goes")]), SIZES, 1, Limits())
        await engine.repository.refresh()
        (tmp_path / "goes" / f"{FIRST}").rename(tmp_path / "goes" / f"{FIRST + 1}")
        await engine.repository.refresh()
        with jax.log_compiles(), caplog_of("jax") as lines:
            outputs = await engine.repository.get("stays", None)[1].infer({"x": np.ones((1, 3), np.float32)})
        await engine.repository.close()
        engine.decoding.close()
        return outputs, lines

    outputs, lines = asyncio.run(main())
    assert outputs["logits"].shape == (1, 2)
    assert [line for line in lines if "ompil" in line] == []


def with_more(features, labels, mode):
    spec = model_fn(features, labels, mode)
    if mode != ec.ModeKeys.PREDICT:
        return spec
    output = ec.export.PredictOutput({"logits": spec.predictions["logits"] + 1.0})
    return spec._replace(export_outputs={"serving_default": output, "more": output})


def test_an_export_that_is_replaced_under_its_name_is_served(export, tmp_path):
    """The server continued to serve the former one, without a word."""
    second_export = trained(tmp_path / "model", with_more).export_saved_model(str(tmp_path / "e"), receiver_fn)

    async def main():
        here = tmp_path / "served" / f"{FIRST}"
        shutil.copytree(export, here)
        engine = new_engine(sources_of([f"m={here}"]), SIZES, 1, Limits())
        x = np.ones((1, 3), np.float32)
        answers, names = [], []
        for other in (None, second_export, export, None):
            if other is not None:
                shutil.rmtree(here)
                await engine.repository.refresh()  # a model whose directory has vanished is still served
                shutil.copytree(other, here)
            await engine.repository.refresh()
            before = engine.repository.get("m", None)[1]
            answers.append((await before.infer({"x": x}))["logits"].tolist())
            names.append(sorted(engine.repository.models))
            (here / "manifest.json").touch()
            await engine.repository.refresh()
            assert engine.repository.get("m", None)[1] is before, "the same export is not loaded again"
        await engine.repository.close()
        engine.decoding.close()
        return names, answers

    names, answers = asyncio.run(main())
    x = {"x": np.ones((1, 3), np.float32)}
    first, second = (
        ec.export.load(path).signatures["serving_default"](**x)["logits"].tolist() for path in (export, second_export)
    )
    assert first != second
    assert answers == [first, second, first, first]
    assert names == [["m"], ["m", "m:more"], ["m"], ["m"]]


def test_an_export_that_two_models_share_is_replaced_in_both(export, tmp_path):
    second_export = trained(tmp_path / "model", with_more).export_saved_model(str(tmp_path / "e"), receiver_fn)

    async def main():
        here = tmp_path / "served" / f"{FIRST}"
        shutil.copytree(export, here)
        engine = new_engine(sources_of([f"m={here}", f"n={here}"]), SIZES, 1, Limits())
        await engine.repository.refresh()
        shutil.rmtree(here)
        shutil.copytree(second_export, here)
        await engine.repository.refresh()
        names = sorted(engine.repository.models)
        await engine.repository.close()
        engine.decoding.close()
        return names

    assert asyncio.run(main()) == ["m", "m:more", "n", "n:more"]


@contextlib.contextmanager
def caplog_of(name):
    """The lines that a logger writes meanwhile."""
    lines, log, handler = [], logging.getLogger(name), logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    log.addHandler(handler)
    try:
        yield lines
    finally:
        log.removeHandler(handler)
