"""Tests with real text: a comparison with TF-IDF and logistic regression, overfitting, and an export for raw text."""

import numpy as np
import pytest

import estimator_core as ec
from estimator_core._cli.main import main
from plugins.canned_bert.tests.topics import examples, write_files

pytestmark = [pytest.mark.slow, pytest.mark.libraries, pytest.mark.plugins]


def accuracy_of_tfidf(parts):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    vectorizer = TfidfVectorizer()
    known = vectorizer.fit_transform([text for _, text in parts["train"]])
    model = LogisticRegression(max_iter=2000).fit(known, [label for label, _ in parts["train"]])
    asked = vectorizer.transform([text for _, text in parts["test"]])
    return float(model.score(asked, [label for label, _ in parts["test"]]))


def test_bert_tiny_from_scratch_by_one_command(tmp_path, capsys):
    parts = write_files(tmp_path)
    model = tmp_path / "model"
    arguments = ["--data", tmp_path, "--model-dir", model, "--max-seq-length", 40, "--num-train-epochs", 24]
    arguments += ["--learning-rate", 1e-3, "--vocab-size", 3000, "--early-stop-steps", 120]
    arguments += ["--save-checkpoints-steps", 24, "--text", parts["test"][0][1]]
    assert main(["bert-classifier", *map(str, arguments)]) == 0
    output = capsys.readouterr().out
    expected = [label for label, _ in parts["test"]]
    predicted = [line.split("\t")[0] for line in (model / "test_results.tsv").read_text().splitlines()[1:]]
    accuracy = float(np.mean(np.array(predicted) == np.array(expected)))
    reference = accuracy_of_tfidf(parts)
    print(f"BERT-tiny {accuracy:.3f}, TF-IDF {reference:.3f}")
    assert accuracy >= 0.9 * reference
    export = ec.export.load(str(model / "export" / "best"))
    texts = np.array([text for _, text in parts["test"]], object)
    found = export.raw_signatures["serving_default"](text_a=texts)["classes"].ravel().tolist()
    assert np.mean(np.array(found) == np.array(expected)) >= 0.85 * reference
    assert output.splitlines()[-1].split("\t")[0] == found[0]


def test_sixty_four_examples_are_learnt_by_heart(tmp_path):
    rows = examples(seed=1)[:64]
    (tmp_path / "train.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    (tmp_path / "dev.tsv").write_text((tmp_path / "train.tsv").read_text())
    arguments = ["--data", tmp_path, "--model-dir", tmp_path / "model", "--max-seq-length", 40, "--vocab-size", 2000]
    arguments += [
        "--num-train-epochs",
        60,
        "--train-batch-size",
        16,
        "--learning-rate",
        1e-3,
        "--do-train",
        "--do-eval",
    ]
    assert main(["bert-classifier", *map(str, arguments)]) == 0
    results = dict(line.split(" = ") for line in (tmp_path / "model" / "eval_results.txt").read_text().splitlines())
    assert float(results["eval_accuracy"]) == 1.0
