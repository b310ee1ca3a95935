"""XGBoost and LightGBM in separate processes, for `file_to_model.py`: a model from a file for each line read.

python _ads_trees.py xgboost|lightgbm train=FILE held_out=FILE rows=N result=FILE

pandas reads the CSV file at once, with words as categories. Both use 100 trees and the defaults of the library. XGBoost
builds histograms of categories by itself. Trees use no batches: their later part is the fit, without reading.
"""

import sys
import time

import _ads
import numpy as np
import pandas as pd

WORDS = ("site", "device", "user")
KINDS = {**dict.fromkeys(_ads.NUMBERS, "float32"), "age": "int64", "label": "int64", **dict.fromkeys(WORDS, "category")}
TREES = 100


def read(path, categories=None):
    """Returns features and labels. Words that do not occur in training rows are missing."""
    frame = pd.read_csv(path, dtype=KINDS)
    for word in WORDS if categories is not None else ():
        frame[word] = frame[word].cat.set_categories(categories[word])
    return frame.drop(columns="label"), frame["label"]


def trained(library, x, y):
    """Returns the model of a library."""
    if library == "xgboost":
        import xgboost

        return xgboost.XGBClassifier(n_estimators=TREES, tree_method="hist", enable_categorical=True, n_jobs=2).fit(
            x, y
        )
    import lightgbm

    return lightgbm.LGBMClassifier(n_estimators=TREES, n_jobs=2, verbose=-1).fit(x, y)


def held_out_loss(model, path, categories):
    """Returns the mean loss over the rows."""
    x, y = read(path, categories)
    chance = np.clip(model.predict_proba(x)[:, 1].astype(np.float64), 1e-7, 1 - 1e-7)
    return float(-np.mean(np.where(y == 1, np.log(chance), np.log1p(-chance))))


def main():
    library, given = sys.argv[1], dict(item.split("=", 1) for item in sys.argv[2:])
    rows = int(given["rows"])
    for _ in sys.stdin:
        noted = _ads.Pass()
        x, y = read(given["train"])
        began = time.perf_counter()
        model = trained(library, x, y)
        figures = {**noted.end(rows), "later": rows / (time.perf_counter() - began)}
        categories = {word: x[word].cat.categories for word in WORDS}
        _ads.answer(given["result"], figures, lambda m=model, c=categories: held_out_loss(m, given["held_out"], c))
        print("done", flush=True)


if __name__ == "__main__":
    main()
