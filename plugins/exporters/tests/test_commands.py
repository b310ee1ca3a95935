"""Tests of the commands `estimator exports`, `estimator predict` and `estimator serve`."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import estimator_core as ec
from estimator_core._cli.main import main
from plugins.exporters.tests.small_model import rows


def test_exports_lists_and_inspects(export, capsys):
    assert main(["exports", str(Path(export).parent)]) == 0
    line = capsys.readouterr().out
    assert Path(export).name in line
    assert re.search(r"stablehlo +step 2 .*serving_default", line)
    assert main(["exports", export]) == 0
    text = capsys.readouterr().out
    assert "all files intact" in text
    assert "takes x: float32 (batch, 3)" in text
    assert main(["exports", export, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["global_step"] == 2


def test_exports_of_nothing_fails_clearly(tmp_path, capsys):
    assert main(["exports", str(tmp_path)]) == 2
    assert "holds no export" in capsys.readouterr().err


def write(path, x):
    if path.suffix == ".npz":
        np.savez(path, x=x, other=x)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"x": row.tolist(), "id": 1}) + "\n" for row in x))
    else:
        path.write_text("x,id\n" + "".join(f'"{json.dumps(row.tolist())}",1\n' for row in x))


def read(path):
    if path.suffix == ".npz":
        return np.load(path)["logits"]
    if path.suffix == ".jsonl":
        return np.array([json.loads(line)["logits"] for line in path.read_text().splitlines()])
    import csv

    with path.open() as file:
        return np.array([json.loads(row["logits"]) for row in csv.DictReader(file)])


@pytest.mark.parametrize("suffix", [".npz", ".jsonl", ".csv"])
def test_predict_scores_files(export, tmp_path, suffix):
    x = rows(10)[0]["x"]
    source, target = tmp_path / f"rows{suffix}", tmp_path / f"scores{suffix}"
    write(source, x)
    assert main(["predict", export, "--input", str(source), "--output", str(target), "--batch-size", "4"]) == 0
    expected = ec.export.load(export).signatures["serving_default"](x=x)["logits"]
    np.testing.assert_allclose(read(target), expected, rtol=0, atol=1e-6)


def test_what_was_scored_as_json(export, tmp_path, capsys):
    write(tmp_path / "rows.npz", rows(3)[0]["x"])
    target = str(tmp_path / "scores.npz")
    assert main(["--json", "predict", export, "--input", str(tmp_path / "rows.npz"), "--output", target]) == 0
    assert json.loads(capsys.readouterr().out) == {"rows": 3, "left_out": 0, "output": target}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.txt", "x", "must end in"),
        ("rows.jsonl", '{"x": [1, 2, 3]}\n{', "line 2: not JSON"),
        (
            "rows.jsonl",
            '{"x": [1, 2, 3]}\n{"x": [1, 2, 3], "x": [4, 5, 6]}',
            "line 2: not JSON: an object has the key 'x' twice",
        ),
        ("rows.jsonl", '{"y": 1}\n', r"line 1: column 'x' has no value; a row must have \['x'\]"),
        ("rows.jsonl", '{"x": ["a", "b", "c"]}\n', "cannot be read as float32"),
        ("rows.jsonl", "", "has no rows"),
        ("rows.csv", "x\n", "has no rows"),
        ("missing.csv", None, "no file matches"),
    ],
)
def test_predict_refuses_bad_files(export, tmp_path, capsys, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    arguments = ["predict", export, "--input", str(tmp_path / name), "--output", str(tmp_path / "out.npz")]
    assert main(arguments) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("command", ["predict", "exports", "serve"])
def test_a_checkpoint_is_no_export(tmp_path, capsys, command):
    (tmp_path / "manifest.json").write_text('{"format": 1, "step": 3}')
    options = {"predict": ["--input", "rows.csv", "--output", str(tmp_path / "out.csv")]}
    assert main([command, str(tmp_path), *options.get(command, [])]) == (2 if command == "serve" else 1)
    expected = "holds no export" if command == "serve" else f"{tmp_path} is a checkpoint, not an export. Export it"
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("output", "message"), [("scores.txt", "must end in"), ("absent/scores.csv", "absent'. Create it first")]
)
def test_predict_refuses_an_output_before_it_looks_at_the_input(export, tmp_path, capsys, output, message):
    assert main(["predict", export, "--input", "no such file", "--output", str(tmp_path / output)]) == 2
    assert message in capsys.readouterr().err


def test_predict_refuses_a_folder_of_another_user_before_it_looks_at_the_input(export, tmp_path, monkeypatch, capsys):
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "theirs" and access(path, mode))
    (tmp_path / "theirs").mkdir()
    output = tmp_path / "theirs" / "scores.csv"
    assert main(["predict", export, "--input", "no such file", "--output", str(output)]) == 2
    assert f"this user may not write to '{tmp_path}/theirs'. Name another file." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "0", "--batch-sizes", "0"], "--batch-sizes must be positive"),
        (["--port", "0", "--max-requests", "0"], "--max-requests must be positive"),
    ],
)
def test_serve_refuses_bad_arguments(export, capsys, arguments, message):
    assert main(["serve", export, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_serve_refuses_a_directory_without_exports(tmp_path, capsys):
    assert main(["serve", str(tmp_path)]) == 2
    assert "holds no export" in capsys.readouterr().err


ANNOUNCED = """
import signal, socket
from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.server import serve

def connect(address):
    host, port = address.removeprefix("http://").split(":")
    socket.create_connection((host, int(port)), timeout=30).close()
    print("connected", flush=True)
    signal.raise_signal(signal.SIGTERM)

serve([], host="127.0.0.1", port=0, batch_sizes=[1], versions=1, limits=Limits(), drain_seconds=1, announce=connect)
"""


def test_the_address_can_be_connected_to_once_it_is_said():
    ran = subprocess.run([sys.executable, "-c", ANNOUNCED], capture_output=True, text=True, check=False, timeout=100)
    assert ran.stdout == "connected\n", ran.stderr


TAKEN = """
import pathlib, socket, sys
from estimator_core.errors import ArgumentError
from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.repository import Source
from estimator_exporters.serving.server import serve

def bound():
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind(("127.0.0.1", port))
    return found

port = 0
with bound() as free:
    port = free.getsockname()[1]
other = []

def take(count):  # models are loaded now
    other.append(bound())
    other[0].listen()

sources = [Source(name="m", directory=pathlib.Path("absent"), update=take)]
ports = {"http": {"port": port}, "grpc": {"port": 0, "grpc_port": port}}[sys.argv[1]]
more = {"host": "127.0.0.1", "batch_sizes": [1], "versions": 1, "limits": Limits(), "drain_seconds": 1}
try:
    serve(sources, announce=print, **ports, **more)
except ArgumentError as error:
    print("refused", str(error).startswith(f"Cannot listen on 127.0.0.1:{port}: "), str(error)[-15:])
"""


@pytest.mark.parametrize(("form", "option"), [("http", "another --port."), ("grpc", "her --grpc-port.")])
def test_an_address_that_is_taken_while_models_are_loaded_is_told_without_a_traceback(form, option):
    ran = subprocess.run([sys.executable, "-c", TAKEN, form], capture_output=True, text=True, check=False, timeout=100)
    assert ran.stdout == f"refused True {option[-15:]}\n", ran.stderr
    assert "Traceback" not in ran.stderr


def test_serve_serves_until_sigterm(export):
    program = "import sys; from estimator_core._cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "serve", f"m={export}", "--port", "0", "--batch-sizes", "1,2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"http://[\d.:]+", line)
        assert address, line + (process.stderr.read() if process.stderr else "")
        with urllib.request.urlopen(f"{address[0]}/v2/models/m") as answer:
            assert json.load(answer)["name"] == "m"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM), errors
    assert "Traceback" not in errors
