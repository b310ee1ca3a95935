"""Tests of `estimator reproduce`: it reaches the same weights bit for bit, or names the difference."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from estimator_core.cli import main
from estimator_core.errors import ArgumentError
from estimator_runs import capsule_differences, read_starts
from estimator_runs.capsule.settings import environment_again, environment_flags, told
from estimator_runs.capsule.start_records import keep
from plugins.runs.tests import line_files

CODE = (
    line_files.CODE.replace("import estimator_core as ec", "import acme_scale, pathlib\nimport estimator_core as ec")
    .replace("jnp.mean(", "acme_scale.SCALE * jnp.mean(")
    .replace("np.linspace(-1, 1, 32, dtype=np.float32)", "np.load(pathlib.Path(__file__).parent / 'x.npy')")
    .replace("3 * x + 1", "np.load(pathlib.Path(__file__).parent / 'y.npy')")
    .replace("shuffle=False", "shuffle=True")
)
RECORD = "acme_scale.py,sha256=HASH,20\nacme_scale-VERSION.dist-info/METADATA,sha256=b,30\n"


def write_package(site, version="1.0", scale="1.0", digest="a"):
    """Writes a package as an installer would, with a number that multiplies the loss."""
    site.mkdir(exist_ok=True)
    (site / "acme_scale.py").write_text(f"SCALE = {scale}\n")
    for old in site.glob("*.dist-info/*"):
        old.unlink()
    about = site / f"acme_scale-{version}.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-scale\nVersion: {version}\n")
    (about / "RECORD").write_text(RECORD.replace("VERSION", version).replace("HASH", digest))


def write_all(folder):
    """Writes the program, its package and its data, as they were for the run."""
    write_package(folder / "site")
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", 3 * x + 1)
    (folder / "line_code.py").write_text(CODE)
    (folder / "line.toml").write_text(line_files.TOML)


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A finished run in its own process, of a program that uses a package and reads files."""
    folder = tmp_path_factory.mktemp("reproduce")
    write_all(folder)
    path = os.pathsep.join([str(folder / "site"), os.environ.get("PYTHONPATH", "")])
    words = ["run", "line.toml", "--model-dir", "run", "--predictions", "0"]
    code = "from estimator_core.cli import main; raise SystemExit(main())"
    command = [sys.executable, "-P", "-c", code, *words]
    subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, check=True)
    return folder


@pytest.fixture
def run(ended, monkeypatch):
    """The model_dir of the finished run. Everything else is restored."""
    write_all(ended)
    shutil.rmtree(ended / "run-reproduced", ignore_errors=True)
    monkeypatch.chdir(ended)
    monkeypatch.syspath_prepend(str(ended / "site"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ended / "site"), os.environ.get("PYTHONPATH", "")]))
    for name in ("acme_scale", "line_code"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return ended / "run"


def change_a_byte(folder):
    content = bytearray((folder / "y.npy").read_bytes())
    content[-1] ^= 1
    (folder / "y.npy").write_bytes(bytes(content))


CHANGES = {
    "package": (lambda folder: write_package(folder / "site", "1.1", scale="0.5"), [], "acme-scale: was 1.0, now 1.1"),
    "code": (
        lambda folder: (folder / "line_code.py").write_text(CODE.replace("jnp.mean", "jnp.sum")),
        [],
        "line_code.py: has changed",
    ),
    "flag": (lambda folder: None, ["--set", "hparams.rate=0.2"], "hparams.rate: was 0.3, now 0.2"),
    "seed": (lambda folder: None, ["--set", "run_config.tf_random_seed=2"], "run_config.tf_random_seed: was 1, now 2"),
    "data": (change_a_byte, [], "array labels: bytes 64 to 128"),
}


def test_the_same_weights_bit_for_bit(run, capfd):
    assert main(["reproduce", "run", "--here"]) == 0
    assert capfd.readouterr().out == "The weights of step 20 are equal, bit for bit.\n"
    assert main(["reproduce", "run", "--here"]) == 2
    assert "run-reproduced is not empty. Remove it" in capfd.readouterr().err


def test_a_quiet_command_runs_quietly_again(run, capfd):
    assert main(["reproduce", "run", "--here", "-q"]) == 0
    assert capfd.readouterr() == ("The weights of step 20 are equal, bit for bit.\n", "")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind == "data" else [pytest.mark.slow]) for kind in CHANGES]
)
def test_one_change_is_named(run, kind, capfd):
    change, words, said = CHANGES[kind]
    change(run.parent)
    assert main(["reproduce", "run", "--here", "--json", *words]) == 1
    found = json.loads(capfd.readouterr().out)
    first = found["differences"][0]
    assert found["step"] == 20
    assert "values differ" in found["weights"]
    assert first["kind"] == kind
    assert said in f"{first['name']}: {first['text']}"


@pytest.mark.slow
def test_a_flag_of_the_environment_is_named_and_harmless_here(run, capfd, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    assert main(["reproduce", "run", "--here", "--set", "run_config.mesh={batch=1}"]) in (0, 1)
    said = capfd.readouterr().out
    assert "flag environment.XLA_FLAGS: was absent, now --xla_force_host_platform_device_count=2" in said
    assert "device devices: was ['cpu: cpu'], now ['cpu: cpu', 'cpu: cpu']" in said


def test_a_run_without_a_seed_or_a_record_says_so(run, capsys):
    assert main(["run", "line.toml", "--model-dir", "drawn", "--set", "run_config.tf_random_seed=none"]) == 0
    assert main(["reproduce", "drawn", "--here"]) == 2
    assert "The seed of drawn was drawn" in capsys.readouterr().err
    (run.parent / "other").mkdir()
    assert main(["reproduce", "other"]) == 2
    assert "has no record from which it could be run again" in capsys.readouterr().err


def test_each_start_has_a_record_without_secrets(run):
    for steps in (10, 20, 30):
        words = ["--set", f"train.max_steps={steps}", "--set", "hparams.api_key=abc123"]
        assert main(["run", "line.toml", "--model-dir", "starts", "--predictions", "0", *words]) == 0
    first, second, third = read_starts(run.parent / "starts")
    assert [start.step for start in (first, second, third)] == [0, 10, 20]
    assert first.epoch < second.epoch < third.epoch
    assert "abc123" not in "".join(path.read_text() for path in (run.parent / "starts" / "capsules").iterdir())
    found = [str(one) for one in capsule_differences(second.capsule, third.capsule)]
    assert found == ["flag train.max_steps: was 20, now 30"]


def test_equal_starts_share_a_record(tmp_path):
    for epoch in (1, 2):
        keep(tmp_path, {"flags": {}}, epoch=epoch, step=5)
    keep(tmp_path, {"flags": {"a": 1}}, epoch=3, step=5)
    assert len(list((tmp_path / "capsules").glob("*.json"))) == 2
    assert [start.capsule for start in read_starts(tmp_path)] == [{"flags": {}}, {"flags": {}}, {"flags": {"a": 1}}]


def test_a_record_that_cannot_be_written_stops_no_run(run, caplog):
    (run.parent / "blocked").mkdir()
    (run.parent / "blocked" / "capsules").write_text("a file where the folder should be")
    assert main(["run", "line.toml", "--model-dir", "blocked", "--predictions", "0"]) == 0
    assert "`estimator reproduce` will not know this start" in caplog.text


def test_the_directory_of_a_run_may_be_named_by_a_dot(run, capfd, monkeypatch):
    monkeypatch.chdir(run)
    (run.parent / "run-reproduced").mkdir()
    (run.parent / "run-reproduced" / "file").write_text("")
    assert main(["reproduce", ".", "--here"]) == 2
    assert "run-reproduced is not empty. Remove it" in capfd.readouterr().err


@pytest.mark.parametrize("words", [["gs://bucket/run"], ["run", "--output", "s3://bucket/again"]])
def test_urls_are_refused_by_name(run, words, capfd):
    assert main(["reproduce", *words, "--here"]) == 2
    assert f"{words[-1]} is a URL, but `estimator reproduce` needs directories" in capfd.readouterr().err


def test_a_file_is_not_taken_for_a_directory(run, capfd):
    assert main(["reproduce", "run", "--here", "--output", "line.toml"]) == 2
    assert "line.toml cannot be a directory of this run: File exists. Give another" in capfd.readouterr().err
    assert main(["reproduce", "run", "--here", "--output", "line.toml/again"]) == 2
    assert "again cannot be a directory of this run: Not a directory." in capfd.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, -signal.SIGINT)])
def test_the_second_run_ends_with_the_command(number, code):
    """It once continued alone, and wrote into a directory that the next start told the user to remove."""
    program = [sys.executable, "-c", "import time; print('runs', flush=True); time.sleep(600)"]
    text = (
        "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # it may be ignored here
        f"from estimator_runs.capsule.child import exit_code; exit_code({program!r}, os.environ, None)"
    )
    with subprocess.Popen([sys.executable, "-c", text], stderr=subprocess.PIPE) as command:
        assert command.stderr is not None
        assert command.stderr.readline() == b"runs\n"
        command.send_signal(number)
        command.communicate(timeout=60)  # until both have closed it
    assert command.returncode == code


def test_uv_ends_with_the_command(tmp_path):
    """uv once continued to build in a directory that the next start told the user to remove."""
    uv, pipe = tmp_path / "uv", tmp_path / "pipe"
    os.mkfifo(pipe)
    uv.write_text(f"#!/bin/sh\nexec 3> {pipe}\necho $$ >&3\nexec sleep 600\n")
    uv.chmod(0o755)
    text = (
        "from pathlib import Path; from estimator_runs.capsule.rebuilding import build_environment; "
        f"build_environment({{'python': '3'}}, Path({str(tmp_path)!r}) / 'environment')"
    )
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with subprocess.Popen([sys.executable, "-c", text], env=environ) as command, pipe.open("rb", buffering=0) as said:
        pid = int(said.readline())
        command.send_signal(signal.SIGTERM)
        command.wait(timeout=60)
        try:
            assert select.select([said], [], [], 60)[0], "uv, which holds the pipe open, has not ended"
            assert said.read() == b""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert command.returncode == -signal.SIGTERM


@pytest.mark.slow
def test_a_run_that_was_stopped_is_run_again_up_to_its_newest_checkpoint(run, capfd):
    """The record is of a run of 1,000 steps that was stopped at step 20."""
    words = ["--set", "train.max_steps=1000", "--set", "run_config.save_checkpoints_steps=1000"]
    (stopped,) = read_starts(run)
    command = {**stopped.capsule["command"], "words": [*stopped.capsule["command"]["words"], *words]}
    early = run.parent / "early"
    shutil.copytree(run, early)
    shutil.rmtree(early / "capsules")
    keep(early, {**stopped.capsule, "command": command}, epoch=stopped.epoch, step=0)
    assert main(["reproduce", "early", "--here", "--output", "early-again"]) in (0, 1)
    assert capfd.readouterr().out.startswith("The weights of step 20 are equal, bit for bit.\n")
    assert not [path for path in (run.parent / "early-again" / "run" / "checkpoints").iterdir() if path.name == "1000"]


def test_a_run_of_several_processes_is_refused_by_name(run, capfd):
    (start,) = read_starts(run)
    shutil.copytree(run, run.parent / "several", dirs_exist_ok=True)
    hardware = {**start.capsule["hardware"], "processes": 2}
    keep(run.parent / "several", {**start.capsule, "hardware": hardware}, epoch=9, step=0)
    assert main(["reproduce", "several"]) == 2
    assert "several was trained by 2 processes together" in capfd.readouterr().err


def test_variables_of_a_job_are_not_recorded_and_not_set_again(monkeypatch):
    job = {
        "JAX_COORDINATOR_ADDRESS": "host:9",
        "JAX_NUM_PROCESSES": "1",
        "JAX_PROCESS_ID": "0",
        "ESTIMATOR_RUN_ID": "r1",
        "ESTIMATOR_RUN_SECRET": "abc",
        "ESTIMATOR_ATTEMPT": "2",
    }
    for name, value in {**job, "XLA_FLAGS": "--now", "JAX_API_KEY": "abc", "OMP_NUM_THREADS": "2"}.items():
        monkeypatch.setenv(name, value)
    assert not job.keys() & environment_flags().keys()
    assert environment_flags()["JAX_API_KEY"] == "***"
    recorded = {**dict.fromkeys(job, "old"), "XLA_FLAGS": "--then", "JAX_API_KEY": "***", "KERAS_API_KEY": "***"}
    flags = {f"environment.{name}": value for name, value in recorded.items()}
    again = environment_again({**flags, "hparams.rate": 0.1}, os.environ)
    assert not again.keys() & {*job, "OMP_NUM_THREADS", "KERAS_API_KEY"}
    assert again["PATH"] == os.environ["PATH"]
    assert (again["XLA_FLAGS"], again["JAX_API_KEY"]) == ("--then", "abc")


def test_secrets_inside_of_values_are_masked():
    hooks = ["tracker(api_key=abc123)", {"token": "abc123", "name": "a"}]
    flags, _ = told({}, {"train.hooks": hooks})
    assert flags["train.hooks"] == ["tracker(api_key=***", {"token": "***", "name": "a"}]


def test_a_torn_line_takes_no_start_with_it(tmp_path):
    starts = tmp_path / "capsules" / "starts.jsonl"
    starts.parent.mkdir()
    for content in ("", '{"epoch": 1, "st'):
        starts.write_text(content)
        with pytest.raises(ArgumentError, match="it has no complete line"):
            read_starts(tmp_path)
    keep(tmp_path, {"flags": {}}, epoch=2, step=5)
    assert [start.epoch for start in read_starts(tmp_path)] == [2]
    with starts.open("a") as file:
        file.write('{"epoch": 3, "step": {}')
    keep(tmp_path, {"flags": {}}, epoch=4, step=5)
    assert [start.epoch for start in read_starts(tmp_path)] == [2, 4]
