"""Tests of exports, rows and scores at URLs: predict, exports and serve work as for local directories."""

import asyncio
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from estimator_core.cli import main
from estimator_core.errors import ArgumentError
from estimator_core.storage import StorageError
from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.mirror import Mirror
from estimator_exporters.serving.repository import sources_of
from estimator_exporters.serving.server import new_engine
from plugins.exporters.tests.live_server import SIZES

FIRST = 1_700_000_000
needs_estimator_storage = pytest.mark.plugins


@pytest.fixture
def store(export, tmp_path):
    """A directory with one export, as a store has it."""
    shutil.copytree(export, tmp_path / "store" / "final" / str(FIRST))
    return tmp_path / "store"


@pytest.fixture
def rows(store):
    for name, value in (("a", 1.0), ("b", 2.0)):
        (store / f"{name}.jsonl").write_text(json.dumps({"x": [value, 0.0, 0.0]}) + "\n")
    return f"file://{store}/*.jsonl"


@needs_estimator_storage
def test_rows_at_a_url_are_scored_into_a_url_as_on_this_machine(store, rows, tmp_path, capsys):
    url, here = f"file://{store}/scores.jsonl", tmp_path / "scores.jsonl"
    assert main(["predict", f"file://{store}/final/{FIRST}", "--input", rows, "--output", url]) == 0
    local = [str(store / "a.jsonl"), str(store / "b.jsonl")]
    assert main(["predict", str(store / "final"), "--input", *local, "--output", str(here)]) == 0
    assert (store / "scores.jsonl").read_text() == here.read_text()
    assert here.read_text().count("\n") == 2
    assert f"2 rows scored; {url}" in capsys.readouterr().out


@needs_estimator_storage
def test_a_bad_row_leaves_no_output_at_a_url(store, capsys):
    (store / "bad.jsonl").write_text('{"x": [1, 2]}\n')
    url = f"file://{store}/scores.jsonl"
    assert main(["predict", f"file://{store}/final", "--input", f"file://{store}/bad.jsonl", "--output", url]) == 2
    assert "bad.jsonl" in capsys.readouterr().err
    assert not (store / "scores.jsonl").exists()


@needs_estimator_storage
def test_a_url_that_matches_nothing_is_named(store, capsys):
    pattern = f"file://{store}/*.csv"
    assert main(["predict", str(store / "final"), "--input", pattern, "--output", "scores.csv"]) == 1
    assert f"No file matches {pattern}" in capsys.readouterr().err


@needs_estimator_storage
def test_exports_at_a_url_are_listed_and_shown(store, capsys):
    assert main(["exports", f"file://{store}/final"]) == 0
    assert str(FIRST) in capsys.readouterr().out
    assert main(["exports", f"file://{store}/final/{FIRST}"]) == 0
    assert "all files intact" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["exports", "serve"])
def test_a_scheme_that_nobody_serves_is_refused(command, capsys):
    assert main([command, "ftp://host/exports"]) == 2
    assert "no installed package provides storage for ftp://" in capsys.readouterr().err


@needs_estimator_storage
def test_a_server_takes_new_exports_of_a_url_and_drops_old_ones(store):
    async def served():
        engine = new_engine(sources_of([f"file://{store}"]), SIZES, 1, Limits())
        await engine.repository.refresh()
        versions = [sorted(engine.repository.models["final"])]
        shutil.copytree(store / "final" / str(FIRST), store / "final" / str(FIRST + 1))
        await engine.repository.refresh()
        versions.append(sorted(engine.repository.models["final"]))
        answer = await engine.repository.get("final", None)[1].infer({"x": np.ones((1, 3), np.float32)})
        await engine.repository.close()
        engine.decoding.close()
        return versions, answer

    versions, answer = asyncio.run(served())
    assert versions == [[str(FIRST)], [str(FIRST + 1)]]
    assert answer


@needs_estimator_storage
def test_a_store_that_cannot_be_read_for_a_while_ends_nothing(store, caplog):
    def fail(self, count):
        raise StorageError("the store is away")

    async def served():
        engine = new_engine(sources_of([f"file://{store}"]), SIZES, 1, Limits())
        await engine.repository.refresh()
        for source in engine.repository.sources:
            object.__setattr__(source, "update", lambda count: fail(None, count))
        await engine.repository.refresh()
        left = sorted(engine.repository.models["final"])
        await engine.repository.close()
        engine.decoding.close()
        return left

    assert asyncio.run(served()) == [str(FIRST)]
    assert "the store is away" in caplog.text


@needs_estimator_storage
def test_beside_damaged_exports_of_a_url_the_good_ones_are_brought_once(store, caplog, monkeypatch):
    """A model from the same URL without damaged exports shares the copy of the URL."""
    brought: list[str] = []
    bring = Mirror._bring
    monkeypatch.setattr(Mirror, "_bring", lambda *arguments: brought.append(str(arguments[1])) or bring(*arguments))
    shutil.copytree(store / "final", store / "best")
    folder = store / "final"
    for number in (FIRST - 1, FIRST):  # of another URL, which has one model
        shutil.copytree(folder / str(FIRST), store.parent / "other" / "far" / str(number))

    async def served():
        sources = sources_of([f"file://{store}", f"file://{store.parent}/other"])
        engine = new_engine(sources, SIZES, 1, Limits())
        await engine.repository.refresh()
        for later in (FIRST + 8, FIRST + 9):
            shutil.copytree(folder / str(FIRST), folder / str(later))
            next((folder / str(later)).rglob("*.safetensors")).write_bytes(b"damaged")
        await engine.repository.refresh()
        known = len(brought), caplog.text.count("is not served")
        for _ in range(3):
            await engine.repository.refresh()
        assert (len(brought), caplog.text.count("is not served")) == known
        shutil.copytree(folder / str(FIRST), folder / str(FIRST + 10))
        for number in (11, 12):
            await engine.repository.refresh()
            shutil.copytree(folder / str(FIRST), folder / str(FIRST + number))
        await engine.repository.refresh()
        versions = {name: sorted(models) for name, models in engine.repository.models.items()}
        await engine.repository.close()
        engine.decoding.close()
        return known, versions

    known, versions = asyncio.run(served())
    assert known[1] == 2
    assert versions == {"best": [str(FIRST)], "far": [str(FIRST)], "final": [str(FIRST + 12)]}
    assert not any(path.endswith(f"far/{FIRST - 1}") for path in brought)


@needs_estimator_storage
def test_an_export_without_its_manifest_is_not_brought(store):
    unfinished = store / "final" / str(FIRST + 1)
    shutil.copytree(store / "final" / str(FIRST), unfinished)
    (unfinished / "manifest.json").unlink()
    mirror = Mirror(f"file://{store}")
    mirror.refresh(2)
    assert [path.name for path in (mirror.directory / "final").iterdir()] == [str(FIRST)]


@needs_estimator_storage
@pytest.mark.parametrize("below", ["final", f"final/{FIRST}"])
def test_an_export_whose_files_arrive_after_its_manifest_is_brought_again(store, below):
    late = next((store / "final" / str(FIRST)).rglob("*.safetensors"))
    whole, name = late.read_bytes(), late.relative_to(store / below)
    late.unlink()
    mirror = Mirror(f"file://{store / below}")
    mirror.refresh(1)
    assert not (mirror.directory / name).exists()
    for arrived in (whole[:9], whole):
        late.write_bytes(arrived)
        mirror.refresh(1)
        assert (mirror.directory / name).read_bytes() == arrived
    before = (mirror.directory / name).stat().st_ctime_ns
    mirror.refresh(1)
    assert (mirror.directory / name).stat().st_ctime_ns == before, "what has not changed was brought again"


@needs_estimator_storage
def test_a_url_without_exports_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="holds no export"):
        sources_of([f"file://{tmp_path}"])


@needs_estimator_storage
def test_an_export_itself_is_served_from_its_url(store):
    (source,) = sources_of([f"one=file://{store}/final/{FIRST}"])
    assert source.name == "one"
    assert [Path(path).name for path in source.newest(1)] == [str(FIRST)]
