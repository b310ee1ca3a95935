"""Tests that a model refuses vocabularies, classes and buckets other than those it was trained with."""

import shutil
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_canned_tabular as ct
import estimator_core as ec
from estimator_core.checkpoint import load_variables
from estimator_core.errors import CheckpointMismatchError, InputError

FEATURES = {"city": np.array(["Rome", "Bonn", "Oslo", "Rome"] * 4), "age": np.linspace(1, 60, 16).astype(np.float32)}
CLASSES = np.array(["no", "yes", "yes", "no"] * 4)


def _cities(directory: Path, words: str = "Rome Bonn Oslo") -> Any:
    path = directory / "cities.txt"
    path.write_text("\n".join(words.split()) + "\n")
    return ct.categorical_column_with_vocabulary_file("city", path)


def _listed(words: str = "Rome Bonn Oslo") -> Any:
    return ct.categorical_column_with_vocabulary_list("city", words.split())


def _buckets(*boundaries: float) -> Any:
    return ct.bucketized_column(ct.numeric_column("age"), list(boundaries))


def _estimator(directory: Path, *columns: Any, classes: tuple[str, ...] | None = ("no", "yes")) -> ec.Estimator:
    return ct.LinearClassifier(
        list(columns), label_vocabulary=None if classes is None else list(classes), model_dir=directory / "run"
    )


def _input() -> Any:
    return ec.inputs.numpy_input_fn(FEATURES, CLASSES, batch_size=8, num_epochs=1, shuffle=False)


@pytest.mark.parametrize("words", ["Bonn Rome Oslo", "Rome Bonn Kiel"])
@pytest.mark.parametrize("mode", ["train", "evaluate", "predict", pytest.param("export", marks=pytest.mark.plugins)])
def test_a_vocabulary_file_with_other_words_is_refused(tmp_path: Path, mode: str, words: str) -> None:
    _estimator(tmp_path, _cities(tmp_path)).train(_input())
    other = _estimator(tmp_path, _cities(tmp_path, words))
    with pytest.raises(CheckpointMismatchError, match=r"vocabulary .* of the feature 'city' .* another model_dir"):
        _use(other, mode)
    _use(_estimator(tmp_path, _cities(tmp_path)), mode)


def _use(estimator: ec.Estimator, mode: str) -> None:
    if mode == "export":
        example = {key: value[:1] for key, value in FEATURES.items()}
        estimator.export_saved_model(
            str(Path(estimator.model_dir, "export")), ec.export.build_raw_serving_input_receiver_fn(example)
        )
    elif mode == "predict":
        list(estimator.predict(ec.inputs.numpy_input_fn(FEATURES, batch_size=8, shuffle=False)))
    else:
        getattr(estimator, mode)(_input())


def test_an_estimator_notices_that_its_file_changed(tmp_path: Path) -> None:
    estimator = _estimator(tmp_path, _cities(tmp_path)).train(_input())
    _cities(tmp_path, "Bonn Rome Oslo")
    with pytest.raises(CheckpointMismatchError, match="'city'"):
        estimator.evaluate(_input())


def test_boundaries_that_divide_alike_are_the_same(tmp_path: Path) -> None:
    _estimator(tmp_path, _buckets(0.1, 20.7)).train(_input())
    assert _estimator(tmp_path, _buckets(*np.array([0.1, 20.7], np.float32))).evaluate(_input())["global_step"] == 2
    with pytest.raises(CheckpointMismatchError, match="'age'"):
        _estimator(tmp_path, _buckets(0.1, 20.8)).evaluate(_input())


@pytest.mark.parametrize("inside", [ct.indicator_column, lambda one: ct.embedding_column(one, 2)])
def test_vocabularies_inside_dense_columns_count(tmp_path: Path, inside: Any) -> None:
    def deep(words: str) -> ec.Estimator:
        return ct.DNNClassifier([3], [inside(_listed(words))], n_classes=2, model_dir=tmp_path / "run")

    deep("Rome Bonn Oslo").train(_input())
    with pytest.raises(CheckpointMismatchError, match="'city'"):
        deep("Oslo Bonn Rome").train(_input())


def test_so_do_those_inside_crosses(tmp_path: Path) -> None:
    def crossed(words: str) -> Any:
        return ct.crossed_column([_listed(words), _buckets(20, 40)], 50)

    _estimator(tmp_path, crossed("Rome Bonn Oslo")).train(_input())
    with pytest.raises(CheckpointMismatchError, match="'city'"):
        _estimator(tmp_path, crossed("Rome Oslo Bonn")).train(_input())


def test_buckets_with_other_boundaries_are_refused(tmp_path: Path) -> None:
    _estimator(tmp_path, _buckets(20, 40)).train(_input())
    with pytest.raises(CheckpointMismatchError, match="'age'"):
        _estimator(tmp_path, _buckets(20, 50)).evaluate(_input())


@pytest.mark.parametrize("first", [("no", "yes"), None])
@pytest.mark.parametrize("mode", ["train", "evaluate"])
def test_classes_in_another_order_are_refused(tmp_path: Path, mode: str, first: tuple[str, ...] | None) -> None:
    _estimator(tmp_path, _listed(), classes=first).train(_input())
    with pytest.raises(CheckpointMismatchError, match=r"label_vocabulary .* classes"):
        _use(_estimator(tmp_path, _listed(), classes=("yes", "no")), mode)
    _use(_estimator(tmp_path, _listed(), classes=("no", "yes")), mode)


def test_a_corrected_file_is_accepted_after_a_training_that_was_refused(tmp_path: Path) -> None:
    """The error named a model that did not exist."""
    estimator = _estimator(tmp_path, _cities(tmp_path, "Roma Bonn Oslo"))
    with pytest.raises(InputError, match="not in the features"):
        estimator.train(ec.inputs.numpy_input_fn({"age": FEATURES["age"]}, CLASSES, batch_size=8, shuffle=False))
    _cities(tmp_path)
    estimator.train(_input())
    _estimator(tmp_path, _cities(tmp_path)).evaluate(_input())


def test_after_the_model_dir_was_removed_a_new_estimator_accepts_another_file(tmp_path: Path) -> None:
    """The error named a model that did not exist. The program of the old Estimator contains the old digests."""
    estimator = _estimator(tmp_path, _cities(tmp_path, "Roma Bonn Oslo")).train(_input())
    shutil.rmtree(estimator.model_dir)
    column = _cities(tmp_path)
    with pytest.raises(CheckpointMismatchError, match=r"'city' .* no checkpoint\. Create the Estimator again"):
        estimator.train(_input())
    _estimator(tmp_path, column).train(_input())
    _estimator(tmp_path, column).evaluate(_input())


@pytest.mark.parametrize("name", ["city", "age"])
def test_a_warm_start_keeps_the_digests_of_the_new_model(tmp_path: Path, name: str) -> None:
    """It copied those of the earlier model, or refused their length."""
    _estimator(tmp_path, _listed()).train(_input())
    columns = [_listed("Oslo Rome Bonn"), *([_buckets(20, 40)] if name == "age" else [])]

    def new(start: Any = None) -> ec.Estimator:
        return ct.LinearClassifier(
            columns, label_vocabulary=["no", "yes"], model_dir=tmp_path / "new", warm_start_from=start
        )

    new(str(tmp_path / "run")).train(_input())
    assert new().train(_input()).evaluate(_input())["global_step"] == 4


def test_other_spellings_of_dates_are_the_same(tmp_path: Path) -> None:
    def one(*words: str) -> ec.Estimator:
        column = ct.categorical_column_with_vocabulary_list("day", words, dates=True)
        return ct.LinearClassifier([column], label_vocabulary=["no", "yes"], model_dir=tmp_path / "run").train(days)

    days = ec.inputs.numpy_input_fn(
        {"day": np.array(["2024-01-31", "2024-02-01"] * 8)}, CLASSES, batch_size=8, num_epochs=1, shuffle=False
    )
    one("2024-01-31", "2024-02-01")
    one("2024-01-31T00:00:00Z", "2024-02-01")
    with pytest.raises(CheckpointMismatchError, match="'day'"):
        one("2024-02-01", "2024-01-31")


def test_a_file_and_a_list_of_the_same_words_are_the_same(tmp_path: Path) -> None:
    _estimator(tmp_path, _cities(tmp_path)).train(_input())
    assert _estimator(tmp_path, _listed()).train(_input()).latest_checkpoint().endswith("/4")


def test_a_checkpoint_without_digests_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.setattr("estimator_heads.data.contract.HeadContract._digests", lambda self: {})
        old = _estimator(tmp_path, _listed()).train(_input())
    assert "data_contract" not in load_variables(old.model_dir)
    _estimator(tmp_path, _listed()).train(_input()).evaluate(_input())


class Colour(str, Enum):  # noqa: UP042  StrEnum has other texts
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (list(Colour), ["red", "blue"]),
        ([np.str_("red"), b"blue"], ["red", "blue"]),
        ([True, False], [1, 0]),
        ([np.True_, np.False_], [1, 0]),
    ],
)
def test_words_of_other_types_have_the_ids_and_the_digest_of_plain_ones(words: list[Any], same: list[Any]) -> None:
    first, second = (ct.categorical_column_with_vocabulary_list("c", given) for given in (words, same))
    assert repr(first) == repr(second)
    assert ct.FeaturePlan.of([first]).vocabularies() == ct.FeaturePlan.of([second]).vocabularies()
    assert first.host_ids({"c": np.array(same)}).ids.tolist() == [[0], [1]]
