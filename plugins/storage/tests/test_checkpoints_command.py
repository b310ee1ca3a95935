"""`estimator checkpoints URL` reads manifests, not arrays."""

from pathlib import Path
from typing import Any

import pytest

import estimator_core as ec
from estimator_core.cli import main
from estimator_core.journal import read_lineage
from estimator_core.storage import open_storage
from estimator_storage.at_urls import checkpoints
from plugins.storage.tests import runs


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"file://{tmp_path_factory.mktemp('store')}/model"
    config = ec.RunConfig(model_dir=url, tf_random_seed=1, save_checkpoints_steps=2, default_hooks=False)
    ec.Estimator(runs.model_fn, config=config).train(runs.batches, max_steps=4)
    return url


@pytest.mark.parametrize(
    ("end", "words", "says"),
    [
        ("", (), ["{url}/checkpoints/0", "{url}/checkpoints/2", "{url}/checkpoints/4"]),
        ("/checkpoints", (), ["{url}/checkpoints/2"]),
        ("", ("--variables",), ["weights", "3 trained parameters"]),
        ("/checkpoints/2", ("--manifest",), ["{url}/checkpoints/2", '"step": 2']),
        ("", ("--diff", "2", "4"), ["variables: 1 of 1 common arrays differ in contents"]),
    ],
)
def test_arrays_stay_in_the_store(
    trained: str, end: str, words: tuple[str, ...], says: list[str], monkeypatch: Any, capsys: Any
) -> None:
    def no_arrays(*arguments: Any, **more: Any) -> None:
        raise AssertionError("arrays were read")

    monkeypatch.setattr(checkpoints, "download_directory", no_arrays)
    assert main(["checkpoints", trained + end, *words]) == 0
    told = capsys.readouterr().out
    assert [line.format(url=trained) for line in says if line.format(url=trained) not in told] == []


def test_a_manifest_that_is_gone_or_another_one_is_named(trained: str, capsys: Any) -> None:
    place = read_lineage(open_storage(trained)).saved[2].place
    held = Path(trained.removeprefix("file://"), place, "manifest.json")
    kept = held.read_bytes()
    held.write_bytes(kept + b" ")
    assert main(["checkpoints", trained]) == 1
    assert "differs from what was recorded" in capsys.readouterr().err
    held.unlink()
    assert main(["checkpoints", trained]) == 1
    assert "manifest.json" in capsys.readouterr().err
    held.write_bytes(kept)
