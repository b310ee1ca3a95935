"""Real tables that packages contain: numbers and words, some of them missing, and a class to predict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _penguins() -> Any:
    from palmerpenguins import load_penguins

    return load_penguins().drop(columns="year").rename(columns={"species": "label"})


def _cars() -> Any:
    from vega_datasets import local_data

    return local_data.cars().drop(columns=["Name", "Year"]).rename(columns={"Origin": "label"})


def _weather() -> Any:
    from vega_datasets import local_data

    table = local_data.seattle_weather()
    return table.assign(month=table["date"].dt.month_name()).drop(columns="date").rename(columns={"weather": "label"})


def _affairs() -> Any:
    import statsmodels.api as sm

    table = sm.datasets.fair.load_pandas().data
    return table.assign(label=np.where(table.pop("affairs") > 0, "yes", "no"))


def _election() -> Any:
    import statsmodels.api as sm

    table = sm.datasets.anes96.load_pandas().data.drop(columns="logpopul")
    return table.assign(label=np.where(table.pop("vote") > 0, "Dole", "Clinton"))


def _of_scikit_learn(name: str) -> Any:
    from sklearn import datasets

    frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
    frame.columns = [column.replace(" ", "_").replace("/", "_per_") for column in frame.columns]
    return frame.assign(label=[f"class {one}" for one in frame.pop("target")])


#: The rows of each table by name, with a column `label` of words.
TABLES: dict[str, Callable[[], Any]] = {
    "penguins": _penguins,
    "cars": _cars,
    "weather": _weather,
    "affairs": _affairs,
    "election": _election,
    "breast_cancer": lambda: _of_scikit_learn("breast_cancer"),
    "wine": lambda: _of_scikit_learn("wine"),
    "digits": lambda: _of_scikit_learn("digits"),
}
