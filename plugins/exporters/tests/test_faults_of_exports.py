"""Exports that disappear, that cannot be loaded or that are replaced under attack do not stop the served version."""

import contextlib
import logging
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from estimator_core.errors import ExportError
from estimator_core.export import Feature
from estimator_exporters.bundle.loaded import Signature
from estimator_exporters.serving import repository
from estimator_exporters.serving.batching import unobserved
from estimator_exporters.serving.models import served_models
from estimator_exporters.serving.repository import sources_of
from plugins.exporters.tests.attacks.kinds import ATTACKS, MEGABYTE
from plugins.exporters.tests.attacks.processes import serving
from plugins.exporters.tests.live_server import Server, running
from plugins.exporters.tests.small_model import rows

FIRST = 1_700_000_000
X = rows(2)[0]


def placed(export, folder, *numbers):
    for number in numbers:
        shutil.copytree(export, folder / str(number))
    return folder


def until(condition, seconds=60):
    ends = time.monotonic() + seconds
    while not condition() and time.monotonic() < ends:
        time.sleep(0.05)
    assert condition()


def test_a_model_that_vanishes_is_served_until_another_is_there(export, tmp_path):
    folder = placed(export, tmp_path / "m", FIRST)
    with running(sources=sources_of([f"m={folder}"])) as server:
        for gone in (folder / str(FIRST), folder):  # its files, and then their directory
            shutil.rmtree(gone)
            time.sleep(0.4)
            assert server.infer("m", **X)[0] == 200
            assert server.request("GET", "/v2/health/ready")[0] == 200
        placed(export, folder, FIRST + 1)
        until(lambda: list(server.repository.models["m"]) == [str(FIRST + 1)])
        assert server.infer("m", **X)[0] == 200


@pytest.mark.parametrize(
    ("argument", "name"),
    [("lr=0.1", "final"), ("./lr=0.1/final", "final"), ("own=lr=0.1/final", "own"), ("own=~/lr=0.1/final", "own")],
)
def test_a_path_may_contain_an_equals_sign(argument, name, export, tmp_path, monkeypatch):
    placed(export, tmp_path / "lr=0.1" / "final", FIRST)
    monkeypatch.setenv("HOME", str(tmp_path))  # only bash expands it after NAME=
    monkeypatch.chdir(tmp_path)
    (source,) = sources_of([argument])
    assert (source.name, source.directory.resolve()) == (name, tmp_path / "lr=0.1" / "final")


@pytest.mark.parametrize("missing", ["variables.safetensors", "manifest.json"])
def test_an_export_that_is_still_being_copied_is_served_once_it_is_whole(missing, export, tmp_path, caplog):
    folder = placed(export, tmp_path / "m", FIRST)
    with running(sources=sources_of([f"m={folder}"])) as server:
        shutil.copytree(export, folder / str(FIRST + 1), ignore=shutil.ignore_patterns(missing))
        until(lambda: any(f"{FIRST + 1} is not served" in line for line in caplog.messages))
        assert list(server.repository.models["m"]) == [str(FIRST)]
        shutil.copy2(Path(export, missing), folder / str(FIRST + 1))  # with the time of the original, as most copies
        until(lambda: list(server.repository.models["m"]) == [str(FIRST + 1)], seconds=20)


def served_versions(server):
    (line,) = [
        one for one in server.metrics.text().decode().splitlines() if one.startswith("estimator_model_versions{")
    ]
    return line


def test_a_server_that_starts_beside_a_damaged_export_serves_the_one_before(export, tmp_path, caplog):
    """The result is the same as for a server that was running all the time."""
    folder = placed(export, tmp_path / "m", FIRST, FIRST + 1, FIRST + 2, FIRST + 3)
    for number in (FIRST + 2, FIRST + 3):
        (folder / str(number) / "variables.safetensors").write_bytes(b"damaged")
    with running(sources=sources_of([f"m={folder}"])) as server:
        assert list(server.repository.models["m"]) == [str(FIRST + 1)]
        time.sleep(0.4)
        assert server.infer("m", **X)[0] == 200
        assert served_versions(server) == 'estimator_model_versions{model="m"} 1.0'
        assert len([line for line in caplog.messages if "is not served" in line]) == 2
        shutil.copy(Path(export, "variables.safetensors"), folder / str(FIRST + 3))
        until(lambda: list(server.repository.models["m"]) == [str(FIRST + 3)])


def test_a_damaged_export_keeps_none_before_it_from_being_served(export, tmp_path):
    """The time stamp of the damaged export may be in the future, because of another clock or permanently."""
    folder = placed(export, tmp_path / "m", FIRST)
    with running(sources=sources_of([f"m={folder}"])) as server:
        damaged = placed(export, tmp_path / "made", FIRST + 9) / str(FIRST + 9)
        (damaged / "variables.safetensors").write_bytes(b"damaged")
        damaged.rename(folder / damaged.name)
        placed(export, folder, FIRST + 1)
        until(lambda: list(server.repository.models["m"]) == [str(FIRST + 1)])


def test_a_model_whose_directory_is_gone_counts_among_the_served_ones(export, tmp_path):
    folder = placed(export, tmp_path / "m", FIRST)
    with running(sources=sources_of([f"m={folder}"])) as server:
        shutil.rmtree(folder)
        time.sleep(0.4)
        assert server.infer("m", **X)[0] == 200
        assert served_versions(server) == 'estimator_model_versions{model="m"} 1.0'


def test_an_export_that_vanishes_while_it_is_loaded_leaves_the_one_before(export, tmp_path, monkeypatch):
    folder = placed(export, tmp_path / "m", FIRST)
    with running(sources=sources_of([f"m={folder}"])) as server:
        load, begun = repository.ec.export.load, threading.Event()

        def vanishing(path):
            shutil.rmtree(path)
            begun.set()
            return load(path)

        monkeypatch.setattr(repository.ec.export, "load", vanishing)
        placed(export, folder, FIRST + 1)
        assert begun.wait(30)
        monkeypatch.undo()
        assert server.infer("m", **X)[0] == 200
        placed(export, folder, FIRST + 2)
        until(lambda: list(server.repository.models["m"]) == [str(FIRST + 2)])


def test_whatever_an_export_raises_the_other_models_are_served_and_it_is_told_once(
    export, tmp_path, monkeypatch, caplog
):
    bad, good = placed(export, tmp_path / "bad", FIRST), placed(export, tmp_path / "good", FIRST)
    load = repository.ec.export.load

    def loaded(path):
        if Path(path).parent == bad:
            raise RuntimeError("the compiler has no memory")
        return load(path)

    monkeypatch.setattr(repository.ec.export, "load", loaded)
    with (
        caplog.at_level(logging.ERROR, "estimator_exporters"),
        running(sources=sources_of([f"bad={bad}", f"good={good}"])) as server,
    ):
        assert server.infer("good", **X)[0] == 200
        assert server.infer("bad", **X)[0] == 404
        assert server.request("GET", "/v2/health/ready")[0] == 503
        time.sleep(0.5)
        told = [line for line in caplog.messages if "is not served: the compiler has no memory" in line]
        assert len(told) == 1, told


def test_models_are_exchanged_under_attack(export, tmp_path):
    """The version before or after answers each request, and memory stays below the budget."""
    folder, over = placed(export, tmp_path / "m", FIRST), threading.Event()
    wrong, answered, versions = [], [], set()
    with serving(f"m={folder}", memory_bytes=256 * MEGABYTE, body_seconds=5, poll_seconds=0.1) as process:
        server = Server(process.port, _NoEngine)
        expected = server.infer("m", **X)[1]["logits"]

        def ask():
            while not over.is_set():
                try:
                    status, outputs = server.infer("m", **X)
                except (BrokenPipeError, ConnectionResetError):  # refused before the request was read
                    continue
                answered.append(status)
                if status not in (200, 429) or (status == 200 and not np.array_equal(outputs["logits"], expected)):
                    wrong.append((status, outputs))

        def attack():
            for one in ATTACKS[:3]:
                one(process)

        threads = [threading.Thread(target=ask), threading.Thread(target=attack)]
        for thread in threads:
            thread.start()
        number = FIRST
        while threads[1].is_alive():
            (folder / str(number)).rename(folder / str(number + 1))
            number += 1
            ends, seen = time.monotonic() + 60, version(server)
            while seen != str(number) and time.monotonic() < ends:
                time.sleep(0.1)
                seen = version(server)
            versions.add(seen)
        over.set()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert answered.count(200) >= 10
        assert versions == {str(one) for one in range(FIRST + 1, number + 1)}
        assert len(versions) >= 2
        assert process.grown < (256 + 200) * MEGABYTE


class _NoEngine:
    """A stand-in engine, because the server is another process."""

    repository = metrics = None


def version(server):
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # as in the loop of requests
        status, _, found = server.request("GET", "/v2/models/m")
        return found["versions"][-1] if status == 200 else None
    return None


def signature(x, y):
    inputs, outputs = {"x": Feature((None,), x)}, {"y": Feature((None,), y)}
    return Signature(name="", method="predict", inputs=inputs, outputs=outputs, run=lambda arrays: {"y": arrays["x"]})


def test_a_signature_that_the_protocol_cannot_hold_is_told_and_leaves_the_others(caplog):
    signatures = {"serving_default": signature("float32", "float32"), "wave": signature("float32", "complex64")}
    export = SimpleNamespace(raw_signatures=signatures)
    assert list(served_models("m", export, (1,), lambda name: unobserved)) == ["m"]
    assert caplog.messages == [
        "m:wave is not served: the protocol does not support the dtype of its output 'y', complex64"
    ]
    export.raw_signatures = {"serving_default": signature("float8_e4m3fn", "float32")}
    with pytest.raises(ExportError, match="no signature that can be"):
        served_models("m", export, (1,), lambda name: unobserved)
