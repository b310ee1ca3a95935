"""Tests of many runs, read from their files."""

import json
import os
import re
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.cli import main
from estimator_core.errors import ArgumentError
from estimator_core.summaries import append_eval_metrics
from estimator_runs import differences, paired_bootstrap, read_run, read_runs


def leave(path, losses, *, seed, rate, ended=True):
    """Writes the files of a run."""
    path = Path(path)
    path.mkdir(parents=True)
    record = {"run_config": {"tf_random_seed": seed, "model_dir": str(path)}, "hparams": {"rate": rate, "layers": [2]}}
    if ended:
        record["ended"] = {"step": 10 * len(losses), "reason": "reached it", "failed": False}
    (path / "run.json").write_text(json.dumps(record))
    for place, loss in enumerate(losses, 1):
        append_eval_metrics(path / "eval", 10 * place, {"loss": loss, "name<": 1.0}, None)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed in (1, 2, 3):
        leave(f"runs/slow/{seed}", [3.0, 1.0 + seed / 10], seed=seed, rate=0.1)
        leave(f"runs/fast/{seed}", [2.0, 0.5 + seed / 10, 0.7 + seed / 10], seed=seed, rate=0.3)
    return tmp_path / "runs"


def lines_of(capsys):
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_the_best_comes_first(runs, capsys):
    leave("runs/none", [], seed=1, rate=0.1, ended=False)
    assert main(["runs", "list", "runs"]) == 0
    rows = lines_of(capsys)[2:]
    assert [row[0] for row in rows[:2]] == ["runs/fast/1", "runs/fast/2"]
    assert rows[0][1] == "0.6"
    assert rows[-1] == ["runs/none", "no"]
    assert main(["runs", "list", "runs", "--mode", "max"]) == 0
    assert lines_of(capsys)[2][:2] == ["runs/slow/1", "3"]


def test_configurations_are_compared_over_the_same_seeds(runs, capsys):
    assert main(["runs", "compare", "runs"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0].split() == ["run", "loss", "seed", "hparams.rate"]
    assert "rate=0.1 against rate=0.3, 3 seeds: +0.5 [+0.5, +0.5]" in text


def test_numbers_of_settings_are_short_where_they_stay_different(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rates = {"low": 10**-2.5, "high": 10**-0.5}
    for name, rate in rates.items():
        for seed in (1, 2):
            leave(f"runs/{name}/{seed}", [rate + seed], seed=seed, rate=rate)
    assert main(["runs", "compare", "runs"]) == 0
    told = capsys.readouterr().out
    assert main(["runs", "plot", "runs", "--output", "page.html"]) == 0
    page = Path("page.html").read_text()
    assert "rate=0.31623 against rate=0.0031623, 2 seeds" in told
    for text in (told, page):
        assert {"0.0031623", "0.31623"} <= set(re.findall(r"0\.[0-9]+", text))
        assert not any(str(rate) in text for rate in rates.values())
    leave("runs/near/1", [1.0], seed=1, rate=rates["low"] + 1e-12)
    assert main(["runs", "compare", "runs"]) == 0
    assert str(rates["low"] + 1e-12) in capsys.readouterr().out


def test_the_same_as_json(runs, capsys):
    assert main(["runs", "list", "runs", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["run"], row["loss"], row["seed"]) for row in rows[:2]] == [
        ("runs/fast/1", 0.6, 1),
        ("runs/fast/2", 0.7, 2),
    ]
    assert rows[0]["ended"]["step"] == 30
    assert main(["--json", "runs", "compare", "runs"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["settings"] for row in told["runs"]] == [{"hparams.rate": 0.3}] * 3 + [{"hparams.rate": 0.1}] * 3
    (pair,) = told["against"]
    assert (pair["settings"], pair["best"], pair["seeds"]) == ("rate=0.1", "rate=0.3", [1, 2, 3])


@pytest.mark.parametrize("action", ["list", "show", "compare"])
def test_a_metric_that_is_not_finite_is_a_string_in_strict_json(runs, action, capsys):
    leave("wild/1", [float("inf"), float("-inf"), float("nan")], seed=1, rate=0.1)
    assert main(["runs", action, "wild", "--json"] if action != "show" else ["runs", "show", "wild/1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    if action == "show":
        assert told["evaluations"][""]["metrics"]["loss"] == "NaN"
    else:
        assert (told if action == "list" else told["runs"])[0]["loss"] == "-Infinity"


def test_what_a_configuration_file_says_differs_too(runs, capsys):
    """The settings of file runs are known, and those of trials that a sweep has chosen. The others are unknown."""
    told = {"hparams.rate": 0.3, "inputs.train.args.size": 32, "train.max_steps": 30, "jax.x": 1, "environment.A": "b"}
    for seed in (1, 2, 3):
        capsules = Path(f"runs/fast/{seed}/capsules")
        capsules.mkdir()
        (capsules / "starts.jsonl").write_text('{"epoch": 0, "step": 0, "capsule": "a"}\n')
        (capsules / "a.json").write_text(json.dumps({"flags": told}))
        leave(f"runs/more/{seed}", [0.9 + seed / 10], seed=seed, rate=0.3)
        params = {"hparams.rate": 7, "inputs.train.args.size": 64}
        Path(f"runs/more/{seed}/trial.json").write_text(json.dumps({"number": seed, "params": params}))
    assert main(["runs", "compare", "runs", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["settings"] for row in found["runs"][::3]] == [
        {"inputs.train.args.size": 32, "hparams.rate": 0.3},
        {"inputs.train.args.size": 64, "hparams.rate": 0.3},
        {"inputs.train.args.size": None, "hparams.rate": 0.1},
    ]
    assert [pair["settings"] for pair in found["against"]] == [
        "train.args.size=64, rate=0.3",
        "train.args.size=None, rate=0.1",
    ]
    (runs / "fast" / "1" / "capsules" / "a.json").write_text('{"flags": {}}')  # the flags are known to be empty
    Path("runs/more/1/trial.json").write_text("[")
    assert set(differences(read_runs([runs / "fast"]))) == {"inputs.train.args.size", "train.max_steps"}
    assert differences(read_runs([runs / "more"])) == {}


def test_a_name_with_a_line_break_stays_on_one_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    leave("runs/a\tb\n\x1b[31mc", [0.5], seed=1, rate=0.1)
    Path("runs/a\tb\n\x1b[31mc/tags.json").write_text(json.dumps(["old\ntag"]))
    assert main(["runs", "list", "runs"]) == 0
    assert main(["runs", "compare", "runs"]) == 0
    told = capsys.readouterr().out
    lines = [line for line in told.splitlines() if "runs/a" in line]
    assert len(lines) == 2
    assert all(r"runs/a\tb\n\x1b[31mc" in line for line in lines)
    assert lines[0].endswith(r"old\ntag")
    assert "\x1b" not in told
    assert main(["runs", "tag", "runs", "--tag", "new\ntag"]) == 2
    assert r"A tag is one line without tabs and control characters, given: 'new\ntag'." in capsys.readouterr().err
    assert main(["runs", "tag", "runs", "--tag", "old\ntag", "--remove"]) == 0


def test_a_metric_that_no_run_has_is_refused_with_those_there_are(runs):
    for words in (["list", "runs"], ["compare", "runs"]):
        assert main(["runs", *words, "--metric", "los"]) == 2
    leave("none", [], seed=1, rate=0.1)
    assert main(["runs", "list", "none", "--metric", "los"]) == 0  # its metrics are not known yet


def test_the_bootstrap_needs_pairs_and_covers_the_mean():
    assert paired_bootstrap({1: 0.5}, {1: 0.6}) is None
    assert paired_bootstrap({1: 0.5, 2: 0.1}, {3: 0.6, 4: 0.1}) is None
    found = paired_bootstrap(dict.fromkeys(range(9), 0.0), {n: (-1.0) ** n for n in range(10)})
    assert found.seeds == tuple(range(9))
    assert found.low < 0.0 < found.high
    assert found == paired_bootstrap(dict.fromkeys(range(9), 0.0), {n: (-1.0) ** n for n in range(9)})


def test_one_run_is_shown(runs, capsys):
    assert main(["runs", "show", "runs/fast/2"]) == 0
    text = capsys.readouterr().out
    assert '"rate": 0.3' in text
    assert "evaluation without a name, step 30" in text
    assert main(["runs", "show", "runs/fast/2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["hparams"]["rate"] == 0.3
    assert told["evaluations"][""]["step"] == 30


def test_tags_are_kept_and_looked_for(runs, capsys):
    assert main(["runs", "tag", "runs/fast/2", "good", "old"]) == 0
    assert main(["runs", "tag", "runs/fast/2", "old", "--remove"]) == 0
    assert read_run(Path("runs/fast/2")).tags == ("good",)
    capsys.readouterr()
    assert main(["runs", "list", "runs", "--tag", "good"]) == 0
    assert [row[0] for row in lines_of(capsys)[2:]] == ["runs/fast/2"]


@pytest.mark.parametrize("tag", ["''", "-", " "])
def test_a_tag_without_a_letter_is_refused(runs, capsys, tag):
    assert main(["runs", "tag", "runs/fast/2", "--tag=" + tag]) == 2
    assert f"A tag needs a letter or a digit, and no comma, given: {tag!r}." in capsys.readouterr().err
    assert read_run(Path("runs/fast/2")).tags == ()


def test_a_page_that_cannot_be_written_is_refused(runs, capsys):
    Path("file").write_text("")
    with pytest.raises(SystemExit, match="2"):
        main(["runs", "plot", "runs", "--output", "file/x.html"])
    assert "file/x.html cannot be written: file is a file, not a directory" in capsys.readouterr().err
    assert main(["runs", "plot", "runs", "--output", "runs.html"]) == 0
    assert not list(Path().glob(".draft-*"))


def test_several_runs_get_their_tags_at_once(runs, capsys):
    """This includes all runs below a directory. If one run cannot be read, none is tagged."""
    assert main(["runs", "tag", "runs/slow", "runs/fast/1", "--tag", "good", "--tag", "old"]) == 0
    assert lines_of(capsys)[-1] == ["runs/fast/1:", "good,", "old"]
    assert [len(run.tags) for run in read_runs([runs])] == [2, 0, 0, 2, 2, 2]
    assert main(["runs", "tag", "runs", "--tag", "old", "--remove"]) == 0
    assert {run.tags for run in read_runs([runs])} == {("good",), ()}
    Path("runs/slow/3/tags.json").write_text("[")
    assert main(["runs", "tag", "runs", "--tag", "new"]) == 2
    assert read_run(Path("runs/fast/1")).tags == ("good",)


def test_a_directory_is_not_taken_for_a_tag(runs, capsys):
    for words, said in ((["runs/fast/1", "runs/fast/2", "good"], "runs/fast/2 is a directory"), (["runs"], "no tag")):
        assert main(["runs", "tag", *words]) == 2
        assert f"estimator runs tag {' '.join(words)} --tag good" in (error := capsys.readouterr().err)
        assert said in error
    assert not any(run.tags for run in read_runs([runs]))


def test_only_runs_that_have_ended_are_removed(runs, capsys):
    leave("runs/cut", [1.0], seed=1, rate=0.1, ended=False)
    assert main(["runs", "rm", "runs/fast/1", "runs/cut"]) == 2
    assert "runs/cut has not ended: it is still running" in capsys.readouterr().err
    assert Path("runs/fast/1").is_dir()
    assert main(["runs", "rm", "runs"]) == 2
    assert main(["runs", "rm", "runs/fast/1", "runs/cut", "--force"]) == 0
    assert len(read_runs([runs])) == 5


def test_a_run_with_a_torn_record_is_removed_by_force(runs, capsys):
    Path("runs/fast/1/run.json").write_text('{"hpar')
    assert main(["runs", "rm", "runs/fast/1"]) == 2
    assert "--force removes it if no process trains there." in capsys.readouterr().err
    assert main(["runs", "rm", "runs/fast/1", "--force"]) == 0
    assert not Path("runs/fast/1").exists()
    Path("empty").mkdir()
    assert main(["runs", "rm", "empty", "--force"]) == 2
    assert Path("empty").is_dir()


@pytest.mark.parametrize("record", ["torn", "cut short", "ended"])
def test_no_run_in_which_a_process_trains_is_removed(runs, capsys, record):
    leave("runs/cut", [1.0], seed=1, rate=0.1, ended=record == "ended")
    codes = []

    def input_fn():
        if record == "torn":
            Path("runs/cut/run.json").write_text("")
        codes.append(main(["runs", "rm", "runs/cut", "runs/fast/1", "--force"]))
        return ec.inputs.numpy_input_fn({"x": np.ones(1)}, np.ones(1), batch_size=1, shuffle=False)()

    def model_fn(features, labels, mode):
        return ec.EstimatorSpec(mode, loss=ec.get_variable("w", ()) ** 2, train_op=optax.sgd(0.1))

    ec.Estimator(model_fn, config=ec.RunConfig("runs/cut", default_hooks=False)).train(input_fn, steps=1)
    assert codes == [2]
    assert "A process trains in runs/cut, and would write there again. Stop it first." in capsys.readouterr().err
    assert Path("runs/fast/1").is_dir()
    assert main(["runs", "rm", "runs/cut", "--force"]) == 0


def test_what_another_user_owns_is_refused_in_one_line(runs, capsys, monkeypatch):
    def forbidden(path, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", forbidden)
        patched.setattr(shutil, "rmtree", forbidden)
        assert main(["runs", "tag", "runs/fast/1", "good"]) == 2
        assert "error: runs/fast/1/tags.json cannot be written: Permission denied." in capsys.readouterr().err
        assert main(["runs", "rm", "runs/fast/1"]) == 2
        told = "error: runs/fast/1 cannot be removed completely: runs/fast/1: Permission denied."
        assert told in capsys.readouterr().err
    monkeypatch.setattr(Path, "is_file", forbidden)
    with pytest.raises(ArgumentError, match=r"^runs/fast cannot be read: Permission denied\.$"):
        read_runs([Path("runs/fast")])


def test_a_page_draws_the_curves(runs):
    pytest.importorskip("estimator_report")
    assert main(["runs", "plot", "runs", "--metric", "loss", "name<", "--output", "page.html"]) == 0
    text = Path("page.html").read_text()
    assert text.count("<polyline") == 12
    assert "name&lt;" in text
    assert "The best by loss is rate=0.3." in text
    leave("runs/new", [0.1], seed=4, rate=0.3)
    assert main(["runs", "plot", "runs", "--mode", "max", "--output", "page.html"]) == 0
    rows = re.findall(
        r"<tr><td>(runs/\S+?)</td><td>(\S+?)</td><td>(\S+?)</td><td>(\d)</td>", Path("page.html").read_text()
    )
    assert (len(rows), rows[0], rows[-1]) == (7, ("runs/slow/1", "3", "1.1", "1"), ("runs/new", "0.1", "0.1", "4"))
    assert "<td>rate=0.1</td><td>3</td><td>+0.5</td><td>[+0.5, +0.5]</td>" in text
    assert "name<" not in text


def test_the_lines_of_a_page_can_be_told_apart_below_a_long_path(runs):
    pytest.importorskip("estimator_report")
    long = runs / "a_directory_whose_name_alone_is_longer_than_a_line_of_a_chart"
    for name in ("slow", "fast"):
        shutil.copytree(runs / name, long / name)
    assert main(["runs", "plot", str(long), "--output", "page.html"]) == 0
    told = re.findall(r'<text x="\d+" y="\d+" style="fill:#\w+">([^<]+)</text>', Path("page.html").read_text())
    assert sorted(told) == [f"{name}/{seed}" for name in ("fast", "slow") for seed in (1, 2, 3)]


def test_the_line_of_a_run_that_holds_the_others_has_its_name(runs):
    pytest.importorskip("estimator_report")
    shutil.copytree(runs / "slow" / "1", runs / "outer")
    shutil.copytree(runs / "fast" / "1", runs / "outer" / "inner")
    assert main(["runs", "plot", str(runs / "outer"), str(runs / "outer" / "inner"), "--output", "page.html"]) == 0
    told = re.findall(r'<text x="\d+" y="\d+" style="fill:#\w+">([^<]+)</text>', Path("page.html").read_text())
    assert sorted(told) == ["inner", "outer"]


def test_a_page_of_relative_and_absolute_paths(runs, capsys):
    pytest.importorskip("estimator_report")
    assert main(["runs", "plot", "runs/slow", str(runs / "fast"), "--output", "page.html"]) == 0
    assert capsys.readouterr().out == "page.html: 6 runs\n"
    assert all(path in Path("page.html").read_text() for path in ("<td>runs/slow/1</td>", f"<td>{runs}/fast/1</td>"))


def test_long_curves_are_thinned(tmp_path):
    from estimator_runs import RunRecord

    values = {step: {"loss": float("nan") if step == 7 else abs(step - 5000.0)} for step in range(100_000)}
    found = RunRecord(path=tmp_path, record={}, evaluations={"": values}).digest("loss")
    assert (len(found.points), found.points[0][0], found.points[-1][0]) == (400, 0.0, 99_999.0)
    assert (found.least, found.most, found.last) == (0.0, 94_999.0, 94_999.0)


def test_results_of_many_runs_are_not_kept_in_memory(tmp_path, capsys):
    """Of thirty runs with 3000 results each, memory keeps a digest and not the 90,000 results."""
    for number in range(30):
        leave(tmp_path / str(number), [1.0], seed=number, rate=0.1)
        line = (tmp_path / str(number) / "eval" / "metrics.jsonl").read_text()
        text = "".join(line.replace('"global_step": 10', f'"global_step": {step}') for step in range(3000))
        (tmp_path / str(number) / "eval" / "metrics.jsonl").write_text(text)
    tracemalloc.start()
    runs = read_runs([tmp_path])
    assert [run.best("loss", "min") for run in runs] == [1.0] * 30
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(runs[0].curve("loss")) == 3000
    assert kept < 6e6
    assert most < 12e6


def test_a_long_run_is_read_in_little_memory(tmp_path):
    """A file of 20,000 points, also with a line that another process tore. Then the newest point of a step counts."""
    leave(tmp_path / "run", [1.0], seed=1, rate=0.1)
    path = tmp_path / "run" / "eval" / "metrics.jsonl"
    lines = [f'{{"global_step": {step}, "metrics": {{"loss": {5 - step / 1e5}}}}}\n' for step in range(20_000)]
    path.write_text("".join(lines))
    tracemalloc.start()
    best = read_run(tmp_path / "run").best("loss", "min")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (best, most < 3e6) == (5 - 19_999 / 1e5, True)
    path.write_text("".join([*lines, '{"global_step": 19999, "metrics": {"loss": 7.0}}\n', '{"global_st']))
    digest = read_run(tmp_path / "run").digest("loss")
    assert (digest.most, digest.last, len(digest.points)) == (7.0, 7.0, 400)
    assert digest.points[0] == (0.0, 5.0)


def test_a_directory_without_runs_is_named(tmp_path):
    with pytest.raises(ArgumentError, match="holds no run"):
        read_runs([tmp_path])
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ArgumentError, match="holds no run that can be read"):
        read_runs([tmp_path])


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("run.json", '{"run_config": {', "run.json: Expecting property name"),
        ("run.json", "[]", "run.json: the file holds no JSON object"),
        ("run.json", '{"run_config": null}', "run.json: run_config is not a JSON object"),
        ("run.json", '{"ended": "yes"}', "run.json: ended is not a JSON object"),
        ("tags.json", "[", "tags.json: Expecting value"),
        ("tags.json", "1", "tags.json: the file holds no JSON list"),
        ("eval/metrics.jsonl", None, "runs/slow/2/eval/metrics.jsonl cannot be read: Is a directory"),
    ],
)
def test_a_torn_run_is_named_and_the_others_are_shown(runs, file, text, told, capsys):
    pytest.importorskip("estimator_report")
    torn = runs / "slow" / "2" / file
    torn.unlink(missing_ok=True)
    torn.mkdir() if text is None else torn.write_text(text)
    for words in (["list", "--json"], ["compare", "--json"], ["plot", "--output", "page.html"]):
        assert main(["runs", words[0], "runs", *words[1:]]) == 0
        output = capsys.readouterr()
        (line,) = output.err.splitlines()
        assert line.startswith("left out: runs/slow/2")
        assert told in line
        if words[0] == "list":
            assert [row["run"] for row in json.loads(output.out)][3:] == ["runs/slow/1", "runs/slow/3"]
        elif words[0] == "compare":
            assert json.loads(output.out)["against"][0]["seeds"] == [1, 3]
        else:
            assert output.out == "page.html: 5 runs\n"


def test_a_link_to_a_directory_above_is_not_followed(runs, tmp_path):
    leave("other", [1.0], seed=1, rate=0.1)
    leave("big/more/deep", [1.0], seed=2, rate=0.1)
    for link, target in {"runs/up": tmp_path, "runs/more": "big", "big/up": tmp_path}.items():
        Path(link).symlink_to(tmp_path / target)
    found = [str(run.path) for run in read_runs([Path("runs")])]
    assert found == [*(f"runs/fast/{seed}" for seed in (1, 2, 3)), "runs/more/more/deep"] + [
        f"runs/slow/{seed}" for seed in (1, 2, 3)
    ]


def test_runs_that_links_lead_to_are_found_once(runs, tmp_path, capsys):
    """A link may form a circle, lead to a missing place, or name a run that was found already."""
    leave("big/run", [1.0], seed=1, rate=0.1)
    leave("big/more/deep", [1.0], seed=2, rate=0.1)
    for name, target in {
        "a": "runs/fast/1",
        "b": "big/run",
        "c": "big/more",
        "d": "runs",
        "e": "none",
        "f": "runs/f",
    }.items():
        (runs / name).symlink_to(tmp_path / target)
    (tmp_path / "big" / "more" / "up").symlink_to(runs)
    found = [str(run.path) for run in read_runs([Path("runs")])]
    assert found == ["runs/b", "runs/c/deep", *(f"runs/{one}/{seed}" for one in ("fast", "slow") for seed in (1, 2, 3))]
    assert main(["runs", "rm", "runs/fast/1", "runs/b"]) == 2
    told = (
        f"runs/b is a symbolic link, but only whole runs are removed. Remove the run it leads to, {tmp_path}/big/run,"
    )
    assert told in capsys.readouterr().err
    assert Path("runs/fast/1").is_dir()


def test_a_run_that_several_places_name_counts_once(runs, capsys):
    Path("link").symlink_to(runs / "fast" / "1")
    places = [Path("runs/slow/../fast/1"), Path("link"), Path("runs/fast")]
    found = [str(run.path) for run in read_runs(places)]
    assert found == ["runs/slow/../fast/1", "runs/fast/2", "runs/fast/3"]
    assert main(["runs", "list", "runs", "absent"]) == 2
    assert "There is no directory absent." in capsys.readouterr().err


@pytest.mark.parametrize("place", ["runs/slow", "runs/slow/2/eval", "runs/slow/2"])
def test_a_directory_that_may_not_be_read_is_named(runs, place, monkeypatch, capsys):
    """Root may read everything, so the test raises the error of the operating system itself."""
    stat, scandir, iterdir = Path.stat, os.scandir, Path.iterdir

    def checked(real, barred):
        def asked(path, *args, **kwargs):
            if barred(Path(path)):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *args, **kwargs)

        return asked

    monkeypatch.setattr(Path, "stat", checked(stat, lambda path: path.parent == Path(place)))
    monkeypatch.setattr(Path, "iterdir", checked(iterdir, lambda path: path == Path(place)))
    monkeypatch.setattr(os, "scandir", checked(scandir, lambda path: path == Path(place)))
    assert main(["runs", "list", "runs", "--json"]) == 0
    output = capsys.readouterr()
    (line,) = output.err.splitlines()
    assert line.startswith(f"left out: {place}" if place != "runs/slow/2/eval" else "left out: runs/slow/2: ")
    assert "cannot be read: Permission denied" in line
    shown = [row["run"] for row in json.loads(output.out)]
    assert shown[:3] == ["runs/fast/1", "runs/fast/2", "runs/fast/3"]
    assert shown[3:] == ([] if place == "runs/slow" else ["runs/slow/1", "runs/slow/3"])
    with pytest.raises(ArgumentError, match=f"{place}.*cannot be read: Permission denied"):
        read_runs([Path("runs")])


def test_where_no_run_can_be_read_each_is_named(runs, capsys):
    for record in runs.rglob("run.json"):
        record.write_text("{")
    assert main(["runs", "list", "runs"]) == 2
    first, *more = capsys.readouterr().err.splitlines()
    assert first.startswith("estimator runs: error: runs/fast/1 holds no run that can be read: run.json: ")
    assert len(more) == 5
