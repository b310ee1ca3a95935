"""Tests of runs with a model_dir in S3: killed at random moments and again during recovery, they end like the
uninterrupted run.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import EXAMPLES, Left, Runs, draw_moment, read_trace, what_is_left

pytestmark = [pytest.mark.plugins, pytest.mark.libraries, pytest.mark.slow, pytest.mark.timeout(0)]

FIRST = ("step", "evaluation", "arrays", "manifest", "record", "retention", "export", "shutdown")
RECOVERY = ("start", "record", "compile", "evaluation", "arrays", "step", "export")
KILLS = int(os.environ.get("FAULT_S3_KILLS", "60"))


@pytest.fixture(scope="module")
def s3_runs(tmp_path_factory: pytest.TempPathFactory) -> Generator[Runs]:
    """The run with averages, early stopping, two evaluations and best exports. Its server uses an emulated S3."""
    pytest.importorskip("moto", reason="S3 is tested with moto: pip install 'moto[server]'")
    from plugins.storage.tests import emulators

    with (
        emulators.s3_server(tmp_path_factory.mktemp("s3")) as address,
        pytest.MonkeyPatch.context() as patch,
    ):
        settings = {**emulators.S3_KEYS, "AWS_EC2_METADATA_DISABLED": "true"}
        for name, value in {**settings, "AWS_ENDPOINT_URL": "http://{}:{}".format(*address)}.items():
            patch.setenv(name, value)
        emulators.s3_client().create_bucket(Bucket="runs")
        server = Runs(EXAMPLES["averaged_run"])
        yield server
        server.close()


def test_sixty_kills(s3_runs: Runs, tmp_path: Path) -> None:
    seed = int.from_bytes(os.urandom(2))
    moments = random.Random(seed)
    assert s3_runs.run(tmp_path / "whole", model_dir="s3://runs/whole") == 0
    whole, phases = what_was_left("s3://runs/whole", tmp_path / "whole", s3_runs), read_trace(tmp_path / "whole")
    kills, runs, counted = 0, 0, Counter[str]()
    while kills < KILLS:
        directory, url = tmp_path / str(runs), f"s3://runs/{seed}-{runs}"
        aimed = (moments.choice(FIRST), moments.choice(RECOVERY))
        for phase in aimed:
            moment = draw_moment(moments, phases, phase, signal.SIGKILL)
            status = s3_runs.run(directory, moment, model_dir=url)
            assert status in (-signal.SIGKILL, 0), (seed, aimed, (directory / "trace.log").read_text())
            kills += status == -signal.SIGKILL
        assert s3_runs.run(directory, model_dir=url) == 0, (seed, aimed, (directory / "trace.log").read_text())
        assert what_was_left(url, directory, s3_runs) == whole, (seed, aimed)
        shutil.rmtree(directory)
        runs, counted = runs + 1, counted + Counter(["+".join(aimed)])
        print(f"seed {seed}: {kills} kills in {runs} runs, each equal and audited", flush=True)
    print(f"{kills} kills in {runs} runs: {dict(counted)}")
    assert kills >= KILLS


def what_was_left(url: str, directory: Path, runs: Runs) -> Left:
    """Checks and returns the results of a run in the store, which holds each record, point and checkpoint byte once."""
    from estimator_core._checkpoint.audit import audit_in_store
    from estimator_core.checkpoint import manifest_digest
    from estimator_core.journal import read_lineage
    from estimator_core.storage import open_storage
    from estimator_storage.at_urls import faults_in_store
    from estimator_storage.at_urls.directories import download_directory

    storage = open_storage(url)
    # A kill may leave a part of an upload, which readers ignore.
    findings = audit_in_store(storage, faults_in_store).findings
    assert [finding for finding in findings if finding.kind != "partial export"] == []
    lineage = read_lineage(storage)
    assert lineage.ended is not None
    local = directory / "run"
    for step, saved in lineage.saved.items():
        path: Any = download_directory(storage, saved.place, local / "checkpoints" / str(step))
        assert manifest_digest(Path(path)) == saved.digest
    keys = {entry.key for entry in storage.list("")}
    for entry in storage.list(""):
        export = re.match(r"export/[^/]+/\d{10}/", entry.key)
        if export and f"{export[0]}manifest.json" not in keys:
            continue
        if entry.key.split("/")[0] not in ("data", "identity", "journal", "leases", "snapshots"):
            (local / entry.key).parent.mkdir(parents=True, exist_ok=True)
            (local / entry.key).write_bytes(storage.get(entry.key))
    return what_is_left(directory, runs.example)
