"""Tests of cross-validation: compared with a loop written by hand, resumed, refused."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from line_files import CODE, TOML

import estimator_core as ec
from estimator_core.cli import main
from estimator_core.errors import ArgumentError, PreemptedError
from estimator_experiment.program import load_module
from estimator_runs import ConfigurationError, metrics_over_folds, open_folds, out_of_fold, read_rows, run_folds

model_selection = pytest.importorskip("sklearn.model_selection")

MORE = """

def rows():
    random = np.random.default_rng(0)
    for start in range(0, 60, 7):
        x = random.normal(size=min(7, 60 - start)).astype(np.float32)
        person = (np.arange(start, start + len(x)) // 4).astype(np.int32)
        yield {"x": x, "person": person}, (3 * x + 1).astype(np.float32)
"""
CROSSVAL = """
[crossval]
folds = 4
seed = 3
batch_size = 8

[crossval.input]
function = "line_code.py:rows"
"""


def write_folds(folder):
    (folder / "line_code.py").write_text(CODE + MORE)
    (folder / "line.toml").write_text(TOML + CROSSVAL)
    return folder / "line.toml"


@pytest.fixture
def line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_folds(Path())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """All folds, run once by one process."""
    folder = tmp_path_factory.mktemp("folds")
    folds = open_folds(write_folds(folder), folder / "whole")
    run_folds(folds)
    return folds


def by_hand(splitter):
    """The loop that users write by hand."""
    code = load_module(Path("line_code.py"))
    batches = list(code.rows())
    x = np.concatenate([features["x"] for features, _ in batches])
    person = np.concatenate([features["person"] for features, _ in batches])
    y = np.concatenate([labels for _, labels in batches])
    predictions, metrics = np.full(60, np.nan, np.float32), []
    for fold, (train, test) in enumerate(splitter.split(x, y)):
        config = ec.RunConfig(model_dir=f"hand/{fold}", tf_random_seed=1, default_hooks=False)
        estimator = ec.Estimator(code.model_fn, config=config, params=ec.HParams(rate=0.3))
        features = {"x": x[train], "person": person[train]}
        estimator.train(
            ec.inputs.numpy_input_fn(features, y[train], batch_size=8, num_epochs=None, shuffle=True, seed=3),
            max_steps=20,
        )
        held = {"x": x[test], "person": person[test]}
        inputs = ec.inputs.numpy_input_fn(held, y[test], batch_size=8, shuffle=False)
        metrics.append(estimator.evaluate(inputs)["error"])
        predictions[test] = [row["y"] for row in estimator.predict(inputs)]
    return predictions, metrics


@pytest.mark.slow
def test_is_the_loop_that_people_write(line, capsys):
    assert main(["crossval", "line.toml", "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    predictions, metrics = by_hand(model_selection.KFold(4, shuffle=True, random_state=3))
    with np.load(said["predictions"]) as stored:
        assert stored["rows"].tolist() == list(range(60))
        assert stored["column/y"].tobytes() == predictions.tobytes()
    error = said["metrics"]["error"]
    assert error["values"] == [float(value) for value in metrics]
    assert error["mean"] == pytest.approx(np.mean(metrics))
    half = 3.182446 * np.sqrt(np.var(metrics, ddof=1) * (1 / 4 + 15 / 45))  # t of three degrees of freedom
    assert error["high"] - error["mean"] == pytest.approx(half)


@pytest.mark.parametrize(
    ("splitter", "theirs"),
    [
        ("k_fold", model_selection.KFold(4, shuffle=True, random_state=3)),
        ("grouped", model_selection.GroupKFold(4)),
        ("time_ordered", model_selection.TimeSeriesSplit(4)),
    ],
)
def test_splits_are_those_of_scikit_learn(line, splitter, theirs):
    more = ["crossval.groups=person"] if splitter == "grouped" else []
    folds = open_folds(line, settings=[f"crossval.splitter={splitter}", *more])
    person = np.arange(60) // 4
    groups = person if splitter == "grouped" else None
    for mine, its in zip(folds.splits, theirs.split(np.zeros(60), folds.rows.labels, groups), strict=True):
        assert [part.tolist() for part in mine] == [part.tolist() for part in its]
        if splitter == "grouped":
            assert not set(person[mine[0]]) & set(person[mine[1]])


def test_classes_are_spread_evenly(line):
    text = Path("line_code.py").read_text().replace("(3 * x + 1).astype(np.float32)", "(x > 0.5).astype(np.int32)")
    Path("line_code.py").write_text(text)
    folds = open_folds(line, settings=["crossval.splitter=stratified"])
    shares = [folds.rows.labels[test].mean() for _, test in folds.splits]
    assert max(shares) - min(shares) < 0.08


def test_labels_may_be_words(line):
    """The labels stay on the host, and the splitter receives numbers."""
    text = Path("line_code.py").read_text().replace("(3 * x + 1).astype(np.float32)", "np.where(x > 0.5, 'yes', 'no')")
    Path("line_code.py").write_text(text)
    folds = open_folds(line, settings=["crossval.splitter=stratified"])
    assert (set(folds.rows.labels), sorted(folds.rows.features)) == ({"yes", "no"}, ["person", "x"])
    shares = [np.mean(folds.rows.labels[test] == "yes") for _, test in folds.splits]
    assert max(shares) - min(shares) < 0.08


def test_rows_before_the_first_fold_in_time_have_no_prediction(line):
    folds = open_folds(line, settings=["crossval.splitter=time_ordered", "train.max_steps=2"])
    run_folds(folds)
    rows, columns = out_of_fold(folds)
    assert rows.tolist() == list(range(12, 60))
    assert columns["y"].shape == (48,)


def test_cut_short_it_goes_on(line, whole, monkeypatch):
    predict, calls = ec.Estimator.predict, []

    def cut(self, *args, **kwargs):
        calls.append(Path(self.model_dir).name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return predict(self, *args, **kwargs)

    monkeypatch.setattr(ec.Estimator, "predict", cut)
    with pytest.raises(KeyboardInterrupt):
        run_folds(open_folds(line, Path("cut")))
    with pytest.raises(ArgumentError, match="Fold 1 of cut has not ended"):
        metrics_over_folds(open_folds(line, Path("cut")))
    resumed = open_folds(line, Path("cut"))
    run_folds(resumed)
    assert calls == ["0", "1", "1", "2", "3"]
    assert out_of_fold(resumed)[1]["y"].tobytes() == out_of_fold(whole)[1]["y"].tobytes()
    assert metrics_over_folds(resumed) == metrics_over_folds(whole)


STOPPED = """

def experiment_fn(config, hparams):
    import estimator_hooks as hooks

    estimator = ec.Estimator(model_fn, config=config, params=ec.HParams(rate=0.3))
    evaluating = hooks.InMemoryEvaluatorHook(estimator, batches(8, 1), every_n_iter=100)
    waiting = [hooks.stop_if_no_decrease_hook(estimator, "loss", 1, run_every_steps=5) for _ in range(2)]
    return ec.Experiment(estimator, batches(8), batches(8, 1), train_steps=6, train_hooks=[*waiting, evaluating])
"""


@pytest.mark.parametrize("evaluates", [False, True])
def test_hooks_that_wait_for_evaluations_are_named_once(line, caplog, evaluates):
    pytest.importorskip("estimator_hooks")
    code = STOPPED if evaluates else STOPPED.replace(", evaluating]", "]")
    Path("line_code.py").write_text(CODE + MORE + code)
    line.write_text('[program]\nfile = "line_code.py"\n' + CROSSVAL.replace("folds = 4", "folds = 2"))
    with caplog.at_level("WARNING", logger="estimator_core"):
        run_folds(open_folds(line))
    told = [record.getMessage() for record in caplog.records if "early stopping" in record.getMessage()]
    assert [text.partition(":")[0] for text in told] == ([] if evaluates else ["MetricStoppingHook"])
    assert all("Each fold trains to step 6" in text for text in told)


ENOUGH = """

class Stops(ec.Hook):
    def next_step(self, step):
        return step + 1

    def after_step(self, run, step, out):
        if step == 3:
            run.request_stop("enough")


def experiment_fn(config, hparams):
    estimator = ec.Estimator(model_fn, config=config, params=ec.HParams(rate=0.3))
    return ec.Experiment(estimator, batches(8), batches(8, 1), train_steps=20, train_hooks=[Stops()])
"""


def test_a_fold_that_a_hook_has_stopped_is_not_trained_further_after_a_kill(line, monkeypatch):
    Path("line_code.py").write_text(CODE + MORE + ENOUGH)
    line.write_text('[program]\nfile = "line_code.py"\n' + CROSSVAL.replace("folds = 4", "folds = 2"))

    def killed(self, *args, **kwargs):
        raise KeyboardInterrupt

    folds = open_folds(line)
    with monkeypatch.context() as patched:
        patched.setattr(ec.Estimator, "evaluate", killed)
        with pytest.raises(KeyboardInterrupt):
            run_folds(folds)
    run_folds(folds)
    assert metrics_over_folds(folds)["global_step"].values == (3.0, 3.0)


def test_a_stop_in_the_last_step_of_a_fold_begins_no_other(line, whole, stopped_late):
    late = open_folds(line, Path("late"))
    with stopped_late(20) as trained, pytest.raises(PreemptedError, match="interrupted"):
        run_folds(late)
    assert (trained, late.done(0), late.done(1)) == ([20], True, False)
    run_folds(late)
    assert out_of_fold(late)[1]["y"].tobytes() == out_of_fold(whole)[1]["y"].tobytes()


def test_a_stop_within_an_evaluation_of_folds_that_are_trained_together(line, stopped_in_evaluations):
    folds = open_folds(line, settings=["crossval.way='together'"])
    with stopped_in_evaluations() as evaluated:
        with pytest.raises(PreemptedError, match="interrupted"):
            run_folds(folds)
        assert (evaluated, folds.done(0), folds.done(1)) == (["0"], True, False)
        run_folds(folds)
        assert evaluated == ["0", "1", "2", "3"]


def test_folds_of_another_user_are_refused_in_one_line(line, whole, monkeypatch, capsys):
    opened = Path.open

    def forbidden(self, mode="r", *args, **kwargs):
        if "w" in mode:
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, mode, *args, **kwargs)

    folder = open_folds(line, Path("begun")).folder
    shutil.copytree(whole.folder / "folds", folder / "folds")
    (folder / "out_of_fold.npz").mkdir()
    assert main(["crossval", "line.toml", "--dir", "begun"]) == 2
    assert "error: begun/out_of_fold.npz cannot be written: Is a directory." in capsys.readouterr().err
    monkeypatch.setattr(Path, "open", forbidden)
    assert main(["crossval", "line.toml", "--dir", "theirs"]) == 2
    assert "theirs/crossval.json cannot be written: Permission denied." in capsys.readouterr().err


def test_a_fold_whose_loss_is_not_finite_ends_no_other(line, capsys):
    """Row 20 is too large for the three folds that train on it."""
    text = Path("line_code.py").read_text()
    Path("line_code.py").write_text(
        text.replace("        yield {", "        x[np.arange(start, start + len(x)) == 20] = 1e15\n        yield {")
    )
    words = ["crossval", "line.toml", "--set", "crossval.shuffle=false"]
    for _ in range(2):
        assert main(words) == 1
        told = capsys.readouterr().err
        assert re.search(r"not finite: of fold 0 at step \d+, of fold 2 at step \d+, of fold 3 at step \d+\.", told)
        assert [path.parent.name for path in Path("runs/line-crossval").glob("folds/*/fold.json")] == ["1"]


def test_a_metric_that_is_not_finite_is_a_string_in_strict_json(line, whole, capsys):
    shutil.copytree(whole.folder, "wild")
    for place in Path("wild").glob("folds/*/fold.json"):
        place.write_text(json.dumps(json.loads(place.read_text()) | {"metrics": {"error": float("nan")}}))
    assert main(["crossval", "line.toml", "--dir", "wild", "--json"]) == 0
    (told,) = capsys.readouterr().out.splitlines()
    error = json.loads(told, parse_constant=pytest.fail)["metrics"]["error"]
    assert (error["mean"], error["values"]) == ("NaN", ["NaN"] * 4)


@pytest.mark.slow
def test_folds_in_processes_are_those_of_one(line, whole):
    """This process has run the first fold. Two processes run the other three."""
    shutil.copytree(whole.model_dir(0), "many/folds/0")
    parallel = open_folds(line, Path("many"), ["crossval.workers=2"])
    before = Path("many/folds/0/fold.json").stat().st_mtime_ns
    run_folds(parallel)
    assert Path("many/folds/0/fold.json").stat().st_mtime_ns == before
    assert out_of_fold(parallel)[1]["y"].tobytes() == out_of_fold(whole)[1]["y"].tobytes()
    assert metrics_over_folds(parallel) == metrics_over_folds(whole)


@pytest.mark.slow
def test_a_fold_that_fails_in_a_process_is_named(line):
    text = Path("line_code.py").read_text()
    folds = open_folds(line, settings=["crossval.workers=2", "train.max_steps=2"])
    Path("line_code.py").write_text(text.replace("def model_fn(features, labels, mode, params):", "def model_fn(x):"))
    with pytest.raises(ArgumentError, match=r"Folds \[0, 1, 2, 3\] have not ended \(exit codes \[1, 1\]\)"):
        run_folds(folds)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: Path("line_code.py").write_text(CODE + MORE.replace("rng(0)", "rng(1)")), "other rows or splits"),
        (lambda: Path("line.toml").write_text((TOML + CROSSVAL).replace("0.3", "0.2")), "another configuration"),
    ],
)
def test_other_data_in_the_same_directory_is_refused(line, change, words):
    open_folds(line)
    change()
    with pytest.raises(ArgumentError, match=f"holds folds of {words}"):
        open_folds(line)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["crossval.splitter=grouped"], r"needs crossval.groups.*\['person', 'x'\]"),
        (["crossval.splitter=grouped", "crossval.groups=prson"], r"of a feature. Given: 'prson'. Features: \['person'"),
        (["crossval.groups=person"], r"'person' has no effect on the splitter 'k_fold'.*grouped, stratified_grouped"),
        (["crossval.splitter=time_ordered", "crossval.groups=person"], "no effect on the splitter 'time_ordered'"),
        (["crossval.folds=61"], "60 rows cannot be split by 'k_fold'"),
        (["crossval.splitter=stratify"], "Did you mean 'stratified'"),
        (["crossval.splitter=time_ordered", "crossval.shuffle=true"], "are not shuffled"),
        (["crossval.folds=1"], "greater than or equal to 2"),
    ],
)
def test_refusals(line, settings, words):
    with pytest.raises(ArgumentError, match=words):
        open_folds(line, settings=settings)


def test_the_input_is_handed_params_and_config(line):
    """As in a run, the rows of the input may depend on hyperparameters."""
    more = """

def by_params(params, config):
    assert config.tf_random_seed == 1
    return batches(8, int(params.epochs))()
"""
    Path("line_code.py").write_text(CODE + more)
    text = (TOML + CROSSVAL).replace("line_code.py:rows", "line_code.py:by_params")
    line.write_text(text.replace("rate = 0.3", "rate = 0.3\nepochs = 1"))
    assert len(open_folds(line).rows) == 32
    assert not Path("runs/line-crossval/folds").exists()


@pytest.mark.parametrize("splitter", ["grouped", "stratified_grouped"])
@pytest.mark.parametrize(
    ("person", "words"),
    [
        ("np.zeros((len(x), 2), np.int32)", r"it has the shape \[2\] in each row. Give a feature with one value"),
        ("np.array(['a', None, *['b'] * 5][:len(x)], object)", r"cannot be compared: row 1 has none \(None\)"),
        ("np.array(['a', 1, *['b'] * 5][:len(x)], object)", "cannot be compared: they are of several types"),
        ("np.where(np.arange(len(x)) == 1, np.nan, 2.0)", r"cannot be compared: row 1 has none \(nan\)"),
        ("np.where(np.arange(len(x)) == 1, np.nan, 2.0).astype(object)", r"row 1 has none \(nan\)"),
    ],
)
def test_groups_that_cannot_be_used_are_refused_by_name(line, splitter, person, words):
    Path("line_code.py").write_text((CODE + MORE).replace('"person": person', f'"person": {person}'))
    with pytest.raises(ArgumentError, match=f"The feature 'person' cannot be crossval.groups: .*{words}"):
        open_folds(line, settings=[f"crossval.splitter={splitter}", "crossval.groups=person"])


def test_rows_that_only_fill_up_a_batch_belong_to_no_fold(line):
    x = np.arange(30, dtype=np.float32)
    padded = ec.inputs.numpy_input_fn({"x": x}, x, batch_size=8, num_epochs=1, shuffle=False, ragged="pad")
    rows = read_rows(padded)
    assert rows.features["x"].tolist() == rows.labels.tolist() == x.tolist()
    assert len(read_rows(padded, most=29)) == 29
    marked = {"x": x[:4], "is_real_example": np.array([1, 1, 1, 0], np.float32)}
    assert read_rows(lambda: [(marked, x[:4])]).labels.tolist() == [0.0, 1.0, 2.0]


def test_ids_of_64_bits_stay_what_the_input_yields(line):
    """A host transform of the model may consume them, as in a run."""
    ids = np.array([1, 2, 2**40, 2**40 + 1, 3, -(2**41)])
    batches = [({"user": part, "x": part % 2}, (part % 2).astype(np.float32)) for part in np.split(ids, 3)]
    rows = read_rows(lambda: batches)
    assert rows.features["user"].tolist() == ids.tolist()
    assert rows.features["x"].dtype == np.int32


@pytest.mark.parametrize("other", [{"b": np.arange(2)}, (np.arange(2), np.arange(2)), np.float32(3)])
def test_rows_need_a_flat_dict_of_arrays(line, other):
    batch = ({"x": np.arange(2), "other": other}, np.zeros(2, np.float32))
    with pytest.raises(ArgumentError, match=r"^Rows can be taken only from batches of a flat dict of features"):
        read_rows(lambda: [batch])


def test_folds_share_no_state_of_their_file(line, capsys):
    code = (CODE + MORE).replace("def model_fn(features", "CALLS = []\n\n\ndef model_fn(features")
    code = code.replace(
        '    y = features["x"]', '    CALLS.append(mode)\n    print("CALLS", len(CALLS))\n    y = features["x"]'
    )
    Path("line_code.py").write_text(code)
    counts = {}
    for folds in (2, 4):
        run_folds(open_folds(line, Path(str(folds)), settings=[f"crossval.folds={folds}"]))
        counts[folds] = capsys.readouterr().out.splitlines().count("CALLS 1")
    assert counts == {2: 2, 4: 4}


def test_a_label_that_is_missing_among_words_is_refused(line):
    labels = "np.array(['a', None, *['b'] * 5][:len(x)], object)"
    Path("line_code.py").write_text((CODE + MORE).replace("(3 * x + 1).astype(np.float32)", labels))
    with pytest.raises(ArgumentError, match="The labels cannot be compared: row 1 has none"):
        open_folds(line, settings=["crossval.splitter=stratified"])


def test_without_rows_the_key_is_named(line):
    line.write_text('program = { file = "line_code.py" }\n')
    with pytest.raises(ConfigurationError, match=r"crossval.input: is missing"):
        open_folds(line)


def test_a_directory_without_the_table_stays_known(line):
    """The directory of a file without [crossval] holds the configuration unchanged."""
    line.write_text(TOML)
    folds = open_folds(line)
    place = folds.folder / "crossval.json"
    said = json.loads(place.read_text())
    text = json.dumps(dict(folds.read.resolved.values), sort_keys=True, default=str)
    place.write_text(json.dumps({"digest": said["digest"], "configuration": text}))
    open_folds(line)
    line.write_text(TOML.replace("0.3", "0.2"))
    with pytest.raises(ArgumentError, match="another configuration"):
        open_folds(line)


COUNTED = """

class Counts(ec.Hook):
    def __init__(self):
        self.rows = 0

    def after_step(self, run, step, out):
        self.rows += run.batch.size

    def end(self, run):
        run.add_result("rows", self.rows)
        if "folds/0" in str(run.model_dir):
            run.add_result("only_here", 1.0)


def experiment_fn(config, hparams):
    estimator = ec.Estimator(model_fn, config=config, params=ec.HParams(rate=0.3))
    return ec.Experiment(estimator, batches(8), batches(8, 1), train_steps=2, eval_hooks=[Counts()])
"""


@pytest.mark.parametrize("way", ["alone", "together"])
def test_folds_are_evaluated_with_the_hooks_of_their_evaluation(line, way):
    Path("line_code.py").write_text(CODE + MORE + COUNTED)
    line.write_text(
        f'[program]\nfile = "line_code.py"\n{CROSSVAL.replace("folds = 4", "folds = 3")}'.replace(
            "[crossval]\n", f'[crossval]\nway = "{way}"\n'
        )
    )
    folds = open_folds(line)
    run_folds(folds)
    found = metrics_over_folds(folds)
    assert found["rows"].values == (20.0, 20.0, 20.0)
    assert "only_here" not in found, "a mean over all folds needs all of them"


def test_predictions_of_several_heads_are_named_by_head(line):
    code = Path("line_code.py").read_text()
    Path("line_code.py").write_text(code.replace('{"y": y}', '{("near", "y"): y, ("far", "y"): 2 * y}'))
    folds = open_folds(line, settings=["crossval.folds=2", "train.max_steps=2"])
    run_folds(folds)
    _, columns = out_of_fold(folds)
    assert sorted(columns) == ["far/y", "near/y"]
    np.testing.assert_array_equal(columns["far/y"], 2 * columns["near/y"])
