"""Tests of two processes whose model_dir is in an emulated S3: they stop early, after any kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_core.journal import read_lineage
from estimator_core.storage import open_storage
from plugins.storage.tests import emulators
from plugins.storage.tests.remote.test_together import outcome, run, table

pytestmark = [pytest.mark.plugins, pytest.mark.slow, pytest.mark.timeout(0)]
#: The loss is highest in the first evaluation, at step 5. The hook reads the loss of step 15 one step later.
STOPS = 16


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a bucket, to which the environment points."""
    with emulators.s3_server(tmp_path_factory.mktemp("moto")) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        for name, value in {**emulators.S3_KEYS, "AWS_ENDPOINT_URL": "http://{}:{}".format(*address)}.items():
            patch.setenv(name, value)
        emulators.s3_client().create_bucket(Bucket="pairs")
        yield "s3://pairs"


@pytest.fixture(scope="module")
def undisturbed(bucket: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs two processes until they stop early."""
    folder = tmp_path_factory.mktemp("two")
    done = run(folder, 2, 40, url=f"{bucket}/undisturbed", stops=True)
    assert done.returncode == 0, done.stdout
    return folder


def test_all_stop_early(bucket: str, undisturbed: Path) -> None:
    lineage = read_lineage(open_storage(f"{bucket}/undisturbed"))
    assert max(lineage.saved) == STOPS
    assert lineage.ended is not None
    assert (lineage.ended.step, lineage.ended.failed) == (STOPS, False)
    assert "loss" in lineage.ended.reason
    losses = {step: one.metrics["loss"] for (name, step), one in lineage.evaluations.items() if name == "held_out"}
    assert sorted(losses) == [5, 10, 15, STOPS]
    assert losses[5] == max(losses.values())
    first, second = (outcome(undisturbed, process) for process in (0, 1))
    assert first["seen"] == second["seen"] == [*range(1, STOPS + 1), -1]
    assert (first["loss"], first["predicted"]) == (second["loss"], second["predicted"])


@pytest.mark.parametrize(
    ("count", "die", "who", "then"),
    [(2, "sent", 0, 2), (2, "written", 1, 2), (2, "sent", 0, 1), (1, "sent", 0, 2), (2, "ended", 0, 2)],
    ids=["the chief", "the second", "two to one", "one to two", "in the end"],
)
def test_a_killed_run_comes_to_the_same(
    bucket: str, undisturbed: Path, tmp_path: Path, count: int, die: str, who: int, then: int
) -> None:
    url = f"{bucket}/{die}-{who}-{count}-{then}"
    done = run(tmp_path, count, 40, url=url, stops=True, die=die, who=who)
    assert done.returncode != 0, done.stdout
    killed = read_lineage(open_storage(url))
    assert max(killed.saved) == (STOPS if die == "ended" else 5)
    assert killed.ended is None or killed.ended.failed  # a chief that survives records the loss of another process
    done = run(tmp_path, then, 40, url=url, stops=True)
    assert done.returncode == 0, done.stdout
    assert table(tmp_path, url) == table(undisturbed, f"{bucket}/undisturbed")
    lineage = read_lineage(open_storage(url))
    assert max(lineage.saved) == STOPS
    assert lineage.ended is not None
    for process in range(then):
        seen = outcome(tmp_path, process)
        assert seen["seen"] == [*(range(6, STOPS + 1) if die != "ended" else ()), -1]
        assert seen["predicted"] == outcome(undisturbed)["predicted"]
