"""Tests of a file system that becomes full during a run: the error reports it, saved checkpoints are complete, and the
run can resume.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._checkpoint.failures import placed
from estimator_core.errors import CheckpointError

STEPS, WIDTH = 30, 20_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], capture_output=True).returncode:
        pytest.skip("this user may not mount a tmpfs")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    """A model with 80 KB of weights, or 240 KB with their slots."""
    weights = ec.get_variable("weights", (WIDTH,), jax.nn.initializers.normal())
    loss = jnp.mean((features["x"] @ weights[:4] - labels) ** 2) + 1e-6 * jnp.sum(weights**2)
    ec.summary.histogram("weights", weights)
    return ec.EstimatorSpec(mode, loss=loss, train_op=optax.adam(0.01))


def train(model_dir: Path, steps: int) -> ec.Estimator:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(64, 4)).astype(np.float32)
    data = ec.inputs.numpy_input_fn({"x": x}, x.sum(axis=1), batch_size=8, num_epochs=None, shuffle=True, seed=1)
    config = ec.RunConfig(
        model_dir=str(model_dir),
        tf_random_seed=1,
        save_checkpoints_steps=5,
        keep_checkpoint_max=2,
        save_summary_steps=1,
        log_step_count_steps=5,
        default_hooks=False,
    )
    once = ec.inputs.numpy_input_fn({"x": x}, x.sum(axis=1), batch_size=64, num_epochs=1, shuffle=False)
    estimator = ec.Estimator(model_fn, config=config)
    ec.train_and_evaluate(estimator, ec.TrainSpec(data, max_steps=steps), ec.EvalSpec(once))
    return estimator


def weights(model_dir: Path) -> bytes:
    return ec.load_variables(str(model_dir))["weights"].tobytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """The weights of step 10 and of the end, with enough space."""
    place = tmp_path_factory.mktemp("whole")
    train(place / "run", 10)
    middle = weights(place / "run")
    train(place / "run", STEPS)
    return middle, weights(place / "run")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # orbax warns of futures it abandoned
@pytest.mark.parametrize(
    "kilobytes", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in (4, 16, 64, 128, 256, 300))]
)
def test_a_run_that_finds_the_disk_full_goes_on_when_there_is_room(
    disk: Path, whole: tuple[bytes, bytes], kilobytes: int
) -> None:
    train(disk / "run", 10)
    ballast = disk / "ballast"
    free = shutil.disk_usage(disk).free
    ballast.write_bytes(os.urandom(max(0, free - kilobytes * 1024)))
    with pytest.raises((OSError, CheckpointError)) as raised:
        train(disk / "run", STEPS)
    told = "".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    assert "No space left" in told or "are free" in told
    assert str(disk) in told
    newest = ec.latest_checkpoint(str(disk / "run"))
    assert newest is not None
    saved = int(Path(newest).name)
    assert saved >= 10
    if saved == 10:
        assert weights(disk / "run") == whole[0]
    ballast.unlink()
    train(disk / "run", STEPS)
    assert weights(disk / "run") == whole[1]


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_an_error_that_an_input_raised_is_not_laid_to_the_model_dir(tmp_path: Path, number: int) -> None:
    def gone() -> Any:
        raise OSError(number, "the share is away")

    estimator = ec.Estimator(model_fn, config=ec.RunConfig(model_dir=str(tmp_path), tf_random_seed=1))
    with pytest.raises(OSError, match=rf"^\[Errno {number}\] the share is away$"):
        estimator.train(gone, steps=1)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_file_system_that_takes_no_more_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*arguments: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    words = rf"{os.strerror(number)}, .* MB are free\. .*Free some space.*: '{tmp_path}'"
    with pytest.raises(OSError, match=words) as raised, placed(tmp_path):
        refuse()
    assert raised.value.errno == number
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("relative", [False, True])
def test_a_file_of_the_model_dir_that_cannot_be_written_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    model_dir = Path("run") if relative else tmp_path / "run"
    file, other = str(tmp_path / "run" / "events"), str(tmp_path / "run2" / "events")
    words = {file: r"Disk quota exceeded, .*The quota is used up.*", other: r"^\[Errno \d+\] Disk quota exceeded"}
    for path, told in words.items():
        with pytest.raises(OSError, match=rf"{told}: '{path}'$"), placed(model_dir):
            raise OSError(errno.EDQUOT, "Disk quota exceeded", path)


def test_exhausted_inodes_are_told(disk: Path) -> None:
    train(disk / "run", 10)
    subprocess.run(["mount", "-o", "remount,nr_inodes=64", str(disk)], check=True)
    for number in range(os.statvfs(disk).f_favail):
        (disk / str(number)).touch()
    with pytest.raises(OSError, match=rf"MB are free, but no inodes for further files\..*{disk}/run/"):
        train(disk / "run", STEPS)
