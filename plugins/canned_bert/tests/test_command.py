"""Tests of `estimator bert-classifier`: every step, and the arguments and files that are refused at the start."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from estimator_canned_bert import BertConfig, Tokenizer, build_vocabulary, read_checkpoint, save_pretrained
from estimator_canned_bert.encoder.parameters import encoder_shapes
from estimator_core._cli.main import main

COLOURS = {"warm": ["red", "orange", "yellow"], "cold": ["blue", "green", "violet"]}


def sentences(count, seed):
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        label = ("warm", "cold")[number % 2]
        words = [*rng.choice(COLOURS[label], 2), *rng.choice(["a", "the", "is", "very", "quite", "one"], 3)]
        rng.shuffle(words)
        rows.append((label, " ".join(words)))
    return rows


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for name, count in (("train", 64), ("dev", 16)):
        rows = sentences(count, len(name))
        (folder / f"{name}.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    (folder / "test.tsv").write_text("".join(f"{text}\n" for _, text in sentences(10, 9)))
    return folder


@pytest.fixture
def pretrained(tmp_path, files):
    place = tmp_path / "pretrained"
    texts = [line.split("\t")[1] for line in (files / "train.tsv").read_text().splitlines()]
    vocabulary = build_vocabulary(texts, place / "vocab.txt", size=80)
    config = BertConfig.of_size("tiny", vocab_size=Tokenizer(vocabulary).vocabulary_size).replace(
        hidden_size=32, intermediate_size=64, max_position_embeddings=32
    )
    rng = np.random.default_rng(0)
    shapes = encoder_shapes(config) | {"output_weights": (2, 32), "output_bias": (2,)}
    values = {name: rng.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}
    save_pretrained(place, values, config)
    return place


NAMES = ("train", "dev")


def command(files, model_dir, *arguments):
    fixed = ["--max-seq-length", "12", "--train-batch-size", "16", "--learning-rate", "0.003"]
    places = ["--data", str(files), "--model-dir", str(model_dir)]
    return main(["bert-classifier", *places, *fixed, *map(str, arguments)])


def _share_of_the_most_frequent_class(files):
    train, dev = ([line.split("\t")[0] for line in (files / f"{name}.tsv").read_text().splitlines()] for name in NAMES)
    return dev.count(max(sorted(set(train)), key=train.count)) / len(dev)


def test_the_help_lists_every_size(capsys):
    with pytest.raises(SystemExit):
        main(["bert-classifier", "--help"])
    assert "tiny, mini, small, medium, base, large (default: tiny)" in " ".join(capsys.readouterr().out.split())


def test_train_evaluate_predict_write(files, pretrained, tmp_path, capsys):
    model = tmp_path / "model"
    arguments = ["--init-checkpoint", pretrained, "--num-train-epochs", "30", "--do-train", "--do-eval", "--do-predict"]
    assert command(files, model, *arguments, "--export-hugging-face", tmp_path / "out") == 0
    output = capsys.readouterr().out
    assert "predicted 10 examples" in output
    assert "for comparison, the most frequent class of the training rows, " in output
    results = dict(line.split(" = ") for line in (model / "eval_results.txt").read_text().splitlines())
    assert float(results["eval_accuracy"]) == 1.0
    header, *lines = (model / "test_results.tsv").read_text().splitlines()
    assert header == "prediction\tcold\twarm"
    assert [line.split("\t")[0] for line in lines] == [label for label, _ in sentences(10, 9)]
    assert json.loads((tmp_path / "out" / "config.json").read_text())["id2label"] == {"0": "cold", "1": "warm"}
    assert (tmp_path / "out" / "vocab.txt").read_bytes() == (pretrained / "vocab.txt").read_bytes()
    first, last = load_file(pretrained / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert first.keys() == last.keys()
    assert not np.array_equal(first["bert.pooler.dense.weight"], last["bert.pooler.dense.weight"])
    assert read_checkpoint(tmp_path / "out").keys() == read_checkpoint(pretrained).keys()
    # A second run of the same command has nothing left to train.
    assert command(files, model, *arguments, "--json") == 0
    output, log = capsys.readouterr()
    found = json.loads(output)
    assert "was reached before" in found["stop_reason"]
    assert found["metrics"]["eval_accuracy"] == 1.0
    assert found["baseline"] == {"eval_accuracy": _share_of_the_most_frequent_class(files)}
    assert (found["predicted"], found["predictions"]) == (10, str(model / "test_results.tsv"))
    assert "predicted 10 examples" in log


@pytest.mark.slow
def test_from_scratch_it_says_so_and_stops_early(files, tmp_path, capsys):
    arguments = ["--num-train-epochs", "60", "--vocab-size", "60", "--buckets", "2", "--do-train"]
    arguments += ["--early-stop-steps", "20", "--save-checkpoints-steps", "10"]
    assert command(files, tmp_path / "model", *arguments) == 0
    output = capsys.readouterr().out
    assert "There are no pretrained weights" in output
    assert "trained: no better loss since step" in output
    assert (tmp_path / "model" / "vocab.txt").is_file()
    stopped = read_checkpoint(tmp_path / "model")
    assert command(files, tmp_path / "model", *arguments) == 0
    assert "trained: no better loss since step" in capsys.readouterr().out
    for name, value in read_checkpoint(tmp_path / "model").items():
        np.testing.assert_array_equal(value, stopped[name], err_msg=name)


@pytest.mark.slow
def test_packing_changes_no_result(files, pretrained, tmp_path, capsys):
    model, found = tmp_path / "model", {}
    asked = ["--init-checkpoint", pretrained, "--do-eval", "--do-predict"]
    for pack, steps in (("--pack",), ["--do-train", "--num-train-epochs", "1"]), ((), []):
        assert command(files, model, *asked, *steps, *pack) == 0
        metrics = dict(line.split(" = ") for line in (model / "eval_results.txt").read_text().splitlines())
        rows = [line.split("\t") for line in (model / "test_results.tsv").read_text().splitlines()[1:]]
        found[pack] = [float(value) for _, value in sorted(metrics.items())], np.array([row[1:] for row in rows], float)
    (metrics, probabilities), (metrics_packed, probabilities_packed) = found[()], found["--pack",]
    np.testing.assert_allclose(metrics_packed, metrics, rtol=0, atol=1e-6)
    # The file has six digits, and the last digit may be rounded up or down.
    np.testing.assert_allclose(probabilities_packed, probabilities, rtol=0, atol=1.1e-6)


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({}, ["--max-seq-length", "64"], "Cannot use sequence length 64: the model has 32 positions"),
        ({"dev.tsv": b"warm\tred\nwet\tblue\n"}, [], "dev.tsv, line 2: the label 'wet' is unknown"),
        ({"dev.tsv": b"warm\tred\ncold\tbl\xffe\n"}, [], "dev.tsv, line 2: not UTF-8"),
        ({"train.tsv": b""}, [], "train.tsv holds no examples"),
        ({"test.tsv": b""}, [], "test.tsv holds no examples"),
        ({"train.tsv": b"warm\n"}, [], "train.tsv, line 1: 1 columns"),
        ({}, ["--task-name", "mrpc"], "train.tsv, line 2: column 4 (second text) is missing"),
        ({}, ["--num-train-epochs", "0"], "--num-train-epochs should be positive"),
        ({}, ["--class-weights", "1,x"], "--class-weights should be numbers"),
        ({}, ["--pack", "--buckets", "2"], "--pack and --buckets exclude each other"),
        ({}, ["--pack", "0"], "--pack should be positive"),
        ({}, ["--num-train-epochs", "inf"], "--num-train-epochs should be finite"),
        ({}, ["--lora-rank", "0"], "--lora-rank should be positive"),
        ({}, ["--weight-decay", "nan"], "weight_decay should be at least 0"),
        ({}, ["--text", "red", "--text", "red ||| blue"], "--text 'red ||| blue': the model reads 1 text(s)"),
        ({}, ["--serve", "99999"], "--serve should be a port from 0 to 65535"),
    ],
)
def test_wrong_inputs_are_refused_at_the_start(files, pretrained, tmp_path, capsys, change, arguments, message):
    for name, content in change.items():
        (files / name).write_bytes(content)
    assert command(files, tmp_path / "model", "--init-checkpoint", pretrained, *arguments) in (
        1,
        2,
    )  # an error of the data, or of the arguments
    assert message in capsys.readouterr().err
    assert not (tmp_path / "model" / "checkpoints").exists()


def test_a_vocabulary_of_a_refused_call_is_made_again(files, tmp_path):
    wrong = ["--class-weights", "1,2,3"]
    assert command(files, tmp_path / "model", *wrong) == 2
    lower = (tmp_path / "model" / "vocab.txt").read_text().splitlines()
    (files / "train.tsv").write_text("warm\tRed Red\ncold\tBLUE BLUE\n")
    assert command(files, tmp_path / "model", *wrong, "--no-do-lower-case", "--vocab-size", "30") == 2
    cased = (tmp_path / "model" / "vocab.txt").read_text().splitlines()
    assert "B" in cased
    assert "B" not in lower
    assert len(cased) <= 30 < len(lower)


@pytest.mark.parametrize("asked", [["--do-export"], ["--export-hugging-face", "out"]])
def test_an_export_without_data_is_refused(tmp_path, capsys, asked):
    assert main(["bert-classifier", "--model-dir", str(tmp_path / "model"), "--text", "red", *asked]) == 2
    assert "--data is needed to train, evaluate, predict or export" in capsys.readouterr().err


@pytest.mark.slow
def test_other_files_are_evaluated_and_predicted_with_the_classes_of_the_run(files, pretrained, tmp_path, capsys):
    fixed = ["--init-checkpoint", pretrained, "--no-do-lower-case", "--export-hugging-face", tmp_path / "out"]
    assert command(files, tmp_path / "model", *fixed, "--num-train-epochs", "0.25", "--do-train") == 0
    told = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert told["do_lower_case"] is False
    expected = [[label, text] for label, text in sentences(4, 3) if label == "warm"]
    later = tmp_path / "later"
    later.mkdir()
    (later / "dev.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in expected))
    (later / "test.tsv").write_text("".join(f"{text}\n" for _, text in expected))
    assert command(later, tmp_path / "new", *fixed) == 2
    assert "There should be two or more different labels" in capsys.readouterr().err
    assert command(later, tmp_path / "model", *fixed) == 0
    assert "trained:" not in capsys.readouterr().out
    assert (tmp_path / "model" / "test_results.tsv").read_text().startswith("prediction\tcold\twarm\n")


def test_a_vocabulary_of_other_weights_is_refused(files, pretrained, tmp_path, capsys):
    path = pretrained / "vocab.txt"
    path.write_text(path.read_text() + "one\nmore\n")
    assert command(files, tmp_path / "model", "--init-checkpoint", pretrained) == 2
    assert "they do not belong together" in capsys.readouterr().err


def test_half_a_download_is_refused(files, pretrained, tmp_path, capsys):
    path = pretrained / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    assert command(files, tmp_path / "model", "--init-checkpoint", pretrained, "--do-train") in (1, 2)
    assert "model.safetensors" in capsys.readouterr().err


@pytest.mark.slow
def test_a_model_dir_of_another_run_is_refused(files, pretrained, tmp_path, capsys):
    arguments = ["--init-checkpoint", pretrained, "--num-train-epochs", "0.25", "--do-train"]
    assert command(files, tmp_path / "model", *arguments) == 0
    (files / "train.tsv").write_text("hot\tred\ncold\tblue\n")
    (files / "dev.tsv").unlink()
    capsys.readouterr()
    assert command(files, tmp_path / "model", *arguments) == 2
    assert "holds a run with different id" not in (error := capsys.readouterr().err)
    assert "holds a run with different labels" in error
