"""Accuracy of `estimator tabular train` without options on real tables, beside pipelines of scikit-learn.

    uv run --group tables python benchmarks/tabular_accuracy.py [--repeats 5] [--tables NAME ...] [--kept FILE]

Repeated stratified cross-validation uses the same five folds for all contestants: each fold has a CSV file to train on
and one to test. The peers impute and scale numbers and encode words one-hot. Then they use a multilayer perceptron,
gradient boosting over histograms, or logistic regression, each with its default settings. Differences are paired by
fold. Their 95% intervals use Nadeau and Bengio's corrected t-test, because the folds of one repetition share most
training rows.

Every fold is written as a line of the file `--kept` as soon as it is measured, and a call measures only missing folds.
So a call may be ended at any time, and repeated with the same file. Repetitions are the outer loop, so an early end
leaves few repetitions of all tables. `--only-kept` prints the contents of the file.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _tables import TABLES

FOLDS = 5
OURS, TARGET = "tabular train", "MLP"


def ours(train: Any, test: Any, folder: Path) -> float:
    """Returns the accuracy on test rows that the command prints. The options here do not change the model."""
    from estimator_core.cli import main

    for name, rows in (("train", train), ("test", test)):
        rows.to_csv(folder / f"{name}.csv", index=False)
    shutil.rmtree(folder / "model", ignore_errors=True)
    files = ["--csv", f"{folder}/train.csv", "--eval-csv", f"{folder}/test.csv", "--model-dir", f"{folder}/model"]
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(io.StringIO()):
        code = main(["tabular", "train", *files, "--label", "label", "--no-baselines", "--no-plots", "--no-export"])
    if code:
        raise RuntimeError(f"estimator tabular train ended with {code}:\n{told.getvalue()}")
    (line,) = [line for line in told.getvalue().splitlines() if line.strip().startswith("accuracy = ")]
    return float(line.split("=")[1])


def peers() -> dict[str, Callable[[], Any]]:
    """Returns pipelines by name."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    def with_columns(model: Any) -> Any:
        numbers = make_pipeline(SimpleImputer(), StandardScaler())
        words = make_pipeline(
            SimpleImputer(strategy="constant", fill_value="none"),
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        )
        columns = make_column_transformer(
            (numbers, make_column_selector(dtype_include="number")),
            (words, make_column_selector(dtype_exclude="number")),
        )
        return make_pipeline(columns, model)

    return {
        TARGET: lambda: with_columns(MLPClassifier(random_state=0)),
        "boosting": lambda: with_columns(HistGradientBoostingClassifier(random_state=0)),
        "logistic": lambda: with_columns(LogisticRegression(max_iter=1000)),
    }


def measured(name: str, repeat: int, fold: int, folder: Path) -> dict[str, float]:
    """Returns the accuracies of all contestants in one fold."""
    from sklearn.model_selection import StratifiedKFold

    table = TABLES[name]()
    folds = StratifiedKFold(n_splits=FOLDS, shuffle=True, random_state=repeat).split(table, table["label"])
    fitted, tested = list(folds)[fold]
    train, test = table.iloc[fitted], table.iloc[tested]
    found = {OURS: ours(train, test, folder)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the perceptron warns if its 200 epochs end before it converges
        for peer, make in peers().items():
            model = make().fit(train.drop(columns="label"), train["label"])
            found[peer] = float(model.score(test.drop(columns="label"), test["label"]))
    return found


def read(kept: Path) -> dict[tuple[str, int, int], dict[str, float]]:
    """Returns the contents of the file by table, repetition and fold."""
    lines = [json.loads(line) for line in kept.read_text().splitlines()] if kept.is_file() else []
    return {(line["table"], line["repeat"], line["fold"]): line["accuracy"] for line in lines}


def measure(names: Sequence[str], repeats: int, kept: Path) -> None:
    """Writes a line for each fold that is not in the file."""
    done = read(kept)
    for repeat in range(repeats):
        for name in names:
            for fold in range(FOLDS):
                if (name, repeat, fold) in done:
                    continue
                began = time.monotonic()
                with tempfile.TemporaryDirectory() as folder:
                    accuracy = measured(name, repeat, fold, Path(folder))
                seconds = round(time.monotonic() - began, 1)
                line = {"table": name, "repeat": repeat, "fold": fold, "accuracy": accuracy, "seconds": seconds}
                with kept.open("a") as file:
                    file.write(json.dumps(line) + "\n")


def half_width(differences: Sequence[float]) -> float:
    """Returns half of the 95% interval of a mean difference: the corrected resampled t-test."""
    from scipy.stats import t

    count = len(differences)
    variance = float(np.var(differences, ddof=1)) * (1 / count + 1 / (FOLDS - 1))
    return float(t.ppf(0.975, count - 1)) * variance**0.5


def compared(found: Mapping[str, Sequence[float]]) -> tuple[list[str], bool]:
    """Returns the cells of one table, and whether it misses the target."""
    cells = [f"{len(found[OURS]):3d} folds", f"{100 * np.mean(found[OURS]):6.2f}"]
    behind = False
    for peer in peers():
        differences = 100 * (np.array(found[OURS]) - found[peer])
        mean, half = float(differences.mean()), half_width(differences.tolist())
        cells.append(f"{peer} {100 * np.mean(found[peer]):6.2f} ({mean:+.2f} ± {half:.2f})")
        behind |= peer == TARGET and mean < -max(1.0, half)
    return cells, behind


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--kept", type=Path, default=Path("tabular_accuracy.jsonl"))
    parser.add_argument("--only-kept", action="store_true")
    args = parser.parse_args()
    if not args.only_kept:
        measure(args.tables, args.repeats, args.kept)
    found = read(args.kept)
    print(f"points of accuracy, differences to {OURS} with 95% intervals")
    missed: list[str] = []
    for name in args.tables:
        folds = [accuracy for (table, repeat, _), accuracy in found.items() if table == name and repeat < args.repeats]
        if len(folds) < 2:
            print(f"{name:>14}  {len(folds):3d} folds: too few")
            continue
        cells, behind = compared({who: [fold[who] for fold in folds] for who in folds[0]})
        print("  ".join([f"{name:>14}", *cells]))
        missed += [name] * behind
    print(f"behind {TARGET} by more than a point and the interval: {', '.join(missed) or 'nowhere'}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
