"""Tests of the request sample: values that fit a model, masked, readable as rows of a table; and of request traces."""

import contextlib
import fcntl
import json
import logging
import resource
import stat
import time

import numpy as np
import pytest

from estimator_core.export import Feature
from estimator_exporters.serving.models import ServedModel
from estimator_exporters.serving.observing import Observing
from estimator_exporters.serving.request_log import RequestLog, Sampling
from plugins.exporters.tests.live_server import SIZES, echo, function_model, running

FEATURES = {"age": Feature((None,)), "port": Feature((None,), "string"), "vector": Feature((None, 2), "int32")}


def arrays(rows, start=0):
    numbers = np.arange(start, start + rows)
    ports = np.array([f"p{number}".encode() for number in numbers], object)
    return {
        "age": numbers.astype(np.float32),
        "port": ports,
        "vector": np.stack([numbers, -numbers], 1).astype("int32"),
    }


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@contextlib.contextmanager
def recording(**sampling):
    log = RequestLog(Sampling(**sampling))
    try:
        yield log
    finally:
        log.close()


def test_rows_are_lines_with_their_values_and_masked_columns_have_none(tmp_path):
    with recording(directory=tmp_path / "log", rate=1.0, masked=frozenset({"port"})) as log:
        log("spam:a/b", FEATURES)(arrays(3))
    (path,) = (tmp_path / "log").iterdir()
    assert path.name == "spam%3Aa%2Fb.jsonl"
    assert lines(path)[2] == {"age": 2.0, "vector": [2, -2], "port": None}
    assert "p2" not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_models_of_like_names_have_a_file_each(tmp_path):
    names = ["a:b", "a_b", "a:b/c", "a_b_c", "a.b"]
    with recording(directory=tmp_path, rate=1.0) as log:
        for number, name in enumerate(names):
            log(name, FEATURES)(arrays(1, number))
    found = sorted(line["age"] for path in tmp_path.iterdir() for line in lines(path))
    assert found == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert len(list(tmp_path.iterdir())) == len(names)


def test_a_mask_that_a_model_has_no_input_for_is_told_once(tmp_path, caplog):
    with recording(directory=tmp_path, masked=frozenset({"port", "agge"})) as log:
        for model in ("m", "m", "other"):
            log(model, FEATURES)
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        f"--request-mask: model {model} has no input agge. The values of its other inputs are written: age, vector"
        for model in ("m", "other")
    ]


def test_text_and_numbers_that_are_none_are_json(tmp_path):
    with recording(directory=tmp_path, rate=1.0) as log:
        sent = {"age": np.float32([np.nan, 1]), "port": np.array([b"\xff", "x"], object)}
        log("m", {name: FEATURES[name] for name in sent})(sent)
    assert lines(tmp_path / "m.jsonl") == [{"age": None, "port": "\ufffd"}, {"age": 1.0, "port": "x"}]


def test_the_share_of_rows(tmp_path):
    with recording(directory=tmp_path, rate=0.1, seed=1) as log:
        record = log("m", FEATURES)
        for start in range(0, 10_000, 100):
            record(arrays(100, start))
    found = [line["age"] for line in lines(tmp_path / "m.jsonl")]
    assert 850 < len(found) < 1150
    assert len(set(found)) == len(found)


def test_a_file_that_is_full_makes_room(tmp_path):
    with recording(directory=tmp_path, rate=1.0, file_bytes=1000) as log:
        record = log("m", FEATURES)
        for start in range(50):
            record(arrays(1, start))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.jsonl", "m.jsonl.1"]
    assert lines(tmp_path / "m.jsonl")[-1]["age"] == 49.0
    assert max(path.stat().st_size for path in tmp_path.iterdir()) < 1200


def written(log, path, count):
    """Waits until a file has this many lines."""
    ends = time.monotonic() + 30
    while (len(lines(path)) if path.exists() else 0) < count and time.monotonic() < ends:
        time.sleep(0.02)
    return lines(path)


def test_a_disk_without_room_costs_rows_and_no_half_lines(tmp_path, caplog):
    """A full disk is reported once, and the log continues when there is room.

    A file size limit simulates the full disk.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    path = tmp_path / "m.jsonl"
    with caplog.at_level(logging.INFO, "estimator_exporters"), recording(directory=tmp_path, rate=1.0) as log:
        record = log("m", FEATURES)
        record(arrays(3))
        assert len(written(log, path, 3)) == 3
        size = path.stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))
        try:
            for start in range(5):
                record(arrays(1, start))
            ends = time.monotonic() + 30
            while log.left_out < 5 and time.monotonic() < ends:
                time.sleep(0.02)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert (log.left_out, path.stat().st_size) == (5, size)
        record(arrays(1, 7))
        assert [line["age"] for line in written(log, path, 4)] == [0, 1, 2, 7]
    told = [line for line in caplog.messages if "cannot be written" in line]
    assert len(told) == 1, told
    assert "written again; 5 rows were left out" in caplog.text


def test_a_server_waits_for_the_one_that_writes(tmp_path):
    """Otherwise a server would cut the rows of another server when the disk is full."""
    path = tmp_path / "m.jsonl"
    with recording(directory=tmp_path, rate=1.0) as log:
        record = log("m", FEATURES)
        record(arrays(1))
        assert len(written(log, path, 1)) == 1
        size = path.stat().st_size
        with path.open("ab", buffering=0) as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            record(arrays(1, 7))
            time.sleep(0.3)
            assert path.stat().st_size == size
            other.write(b"{}\n")
            other.truncate(size)
        assert [line["age"] for line in written(log, path, 2)] == [0, 7]


def test_servers_that_find_one_file_full_move_it_once(tmp_path):
    """Otherwise the second server would overwrite the rows of the first with a file of one row."""
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"age": 3}\n' * 20)
    with recording(directory=tmp_path, rate=1.0, file_bytes=100) as log:
        record = log("m", FEATURES)
        with path.open("ab", buffering=0) as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            record(arrays(1, 7))
            time.sleep(0.3)  # it has opened the file, and waits
            path.replace(path.with_name("m.jsonl.1"))
            path.write_bytes(b'{"age": 5}\n')
        assert [line["age"] for line in written(log, path, 2)] == [5, 7]
    assert path.with_name("m.jsonl.1").read_bytes().count(b"\n") == 20


def test_a_directory_that_is_gone_ends_nothing(tmp_path, caplog):
    folder = tmp_path / "log"
    with recording(directory=folder, rate=1.0) as log:
        record = log("m", FEATURES)
        folder.rmdir()
        record(arrays(1))
        record({"age": np.float32([1]), "port": np.array([object()]), "vector": np.ones((1, 2), np.int32)})
        ends = time.monotonic() + 30
        while log.left_out < 2 and time.monotonic() < ends:
            time.sleep(0.02)
        folder.mkdir()
        record(arrays(1, 5))
        assert [line["age"] for line in written(log, folder / "m.jsonl", 1)] == [5]
    assert caplog.text.count("cannot be written") == 1


def recorded_echo(log):
    model = echo("float32")
    return ServedModel(model._array, SIZES, record=log("echo", model.inputs))


def test_only_requests_that_fit_are_kept(tmp_path):
    with recording(directory=tmp_path, rate=1.0) as log, running({"echo": {"1": recorded_echo(log)}}) as server:
        assert server.infer("echo", x=np.float32([[1, 2], [3, 4]]))[0] == 200
        assert server.infer("echo", x=np.float32([[1, 2, 3]]))[0] == 400
        assert server.infer("echo", x=np.int32([[1, 2]]))[0] == 400
        assert server.request("POST", "/v1/models/echo:predict", {"instances": [[5, 6]]})[0] == 200
    assert [line["x"] for line in lines(tmp_path / "echo.jsonl")] == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.plugins
def test_inputs_validate_compares_the_log_with_the_training_data(tmp_path, capsys):
    from estimator_core._cli.main import main

    ages = np.random.default_rng(0).integers(18, 80, 400)
    (tmp_path / "train.csv").write_text("age,port,label\n" + "".join(f"{age}.5,{'AB'[age % 2]},1\n" for age in ages))
    features = {"age": Feature((None,)), "port": Feature((None,), "string")}
    with recording(directory=tmp_path / "log", rate=1.0) as log:
        for name, shift in (("good", 0), ("bad", 300)):
            ports = np.array([b"AB"[age % 2 : age % 2 + 1] for age in ages], object)
            log(name, features)({"age": (ages + 0.5 + shift).astype(np.float32), "port": ports})
    command = ["inputs", "validate", "--against", str(tmp_path / "train.csv"), "--label", "label", "--no-label"]
    assert main([*command, str(tmp_path / "log" / "good.jsonl")]) == 0, capsys.readouterr().out
    assert main([*command, str(tmp_path / "log" / "bad.jsonl")]) == 3
    assert "above 79.5" in capsys.readouterr().out


def test_a_request_is_traced_below_its_client_with_its_status():
    seen = []

    @contextlib.contextmanager
    def tracing(model, parent):
        statuses = []
        yield statuses.append
        seen.append((model, parent, statuses))

    with running({"echo": {"1": echo("float32")}}, observing=Observing(tracing=tracing)) as server:
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
        server.request("POST", "/v2/models/echo/infer", body, {"traceparent": "00-1-2-01"})
        server.request("POST", "/v2/models/echo/infer", {"inputs": []})
    assert seen == [("echo", "00-1-2-01", [200]), ("echo", None, [400])]


def test_a_model_that_fails_is_traced_as_500(caplog):
    def fail(arrays):
        if (arrays["x"] > 0).any():
            raise ValueError("broken")
        return {"y": arrays["x"]}

    seen = []

    @contextlib.contextmanager
    def tracing(model, parent):
        yield seen.append

    feature = Feature((None, 2))
    model = function_model(fail, {"x": feature}, {"y": feature})
    with (
        caplog.at_level(logging.CRITICAL),
        running({"m": {"1": model}}, observing=Observing(tracing=tracing)) as server,
    ):
        server.infer("m", x=np.float32([[1, 2]]))
    assert seen == [500]
