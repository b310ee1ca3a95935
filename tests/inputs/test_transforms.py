"""Tests of HostTransform: it is applied in the input, written to a directory and read again."""

import json

import numpy as np
import pytest

from estimator_core._inputs import open_input
from estimator_core._inputs.arrays import numpy_input_fn
from estimator_core._inputs.input_fn import from_iterable
from estimator_core._inputs.transforms import (
    HostTransform,
    apply_transforms,
    load_transforms,
    save_transforms,
    with_transforms,
)
from estimator_core.errors import ArgumentTypeError, ExportError, InputError


class Vocabulary:
    """Maps a text to its line number in a file."""

    name, version = "vocabulary", 2

    def __init__(self, feature, words, offset=0):
        self._feature, self._path, self._offset = feature, words, offset
        self._ids = {word: i for i, word in enumerate(words.read_text().split())}

    def config(self):
        return {"feature": self._feature, "offset": self._offset}

    @property
    def files(self):
        return {"words": self._path}

    def apply(self, batch):
        ids = np.array([self._ids[word] + self._offset for word in batch[self._feature]], np.int32)
        return {**batch, self._feature: ids}


class Upper:
    name, version, files = "upper", 1, {}

    def config(self):
        return {}

    def apply(self, batch):
        return {name: np.char.upper(array.astype(str)) for name, array in batch.items()}


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("cat dog emu\n")
    return path


TEXT = {"pet": np.array(["dog", "cat", "emu", "dog"]), "n": np.arange(4)}
LOOKUP = {"vocabulary": Vocabulary, "upper": Upper}.__getitem__


def test_features_and_labels_go_through_their_transforms(words):
    input_fn = numpy_input_fn(TEXT, np.array(["emu", "emu", "cat", "dog"]), batch_size=3, shuffle=False)
    changed = with_transforms(
        input_fn, features=[Vocabulary("pet", words)], labels=[Vocabulary("labels", words, offset=10)]
    )
    batches = list(open_input(changed, mode="train"))
    assert [b.features["pet"].tolist() for b in batches] == [[1, 0, 2], [1]]
    assert [b.labels.tolist() for b in batches] == [[12, 12, 10], [11]]
    assert batches[0].host == {}


def test_a_bare_array_is_called_features_and_may_stay_bare_or_become_a_dict(words):
    class Lengths(Upper):
        def apply(self, batch):
            return {"length": np.char.str_len(batch["features"])}

    bare = numpy_input_fn(TEXT["pet"], batch_size=2, shuffle=False)
    ids = next(open_input(with_transforms(bare, features=[Vocabulary("features", words)]), mode="infer"))
    assert ids.features.tolist() == [1, 0]
    lengths = next(open_input(with_transforms(bare, features=[Lengths()]), mode="infer"))
    assert lengths.features["length"].tolist() == [3, 3]


def test_the_position_passes_through_the_transforms_and_padding(words):
    def make():
        plain = numpy_input_fn(TEXT, batch_size=3, shuffle=True, num_epochs=3, seed=1)
        return from_iterable(with_transforms(plain, features=[Vocabulary("pet", words)]), ragged="pad")

    batches = list(open_input(make(), mode="train"))
    resumed = open_input(make(), mode="train", position=batches[1].position)
    assert [b.features["pet"].tolist() for b in resumed] == [b.features["pet"].tolist() for b in batches[2:]]
    assert resumed.restored.startswith("Input continues after 6 examples")


def test_transforms_run_in_order():
    class Exclaim(Upper):
        def apply(self, batch):
            return {name: np.char.add(array, "!a") for name, array in batch.items()}

    batch = {"t": np.array(["a"])}
    assert apply_transforms([Upper(), Exclaim()], batch)["t"].tolist() == ["A!a"]
    assert apply_transforms([Exclaim(), Upper()], batch)["t"].tolist() == ["A!A"]
    assert batch["t"].tolist() == ["a"]


def test_a_transform_that_fails_is_named_with_its_batch(words):
    with pytest.raises(InputError, match=r"'vocabulary' failed on a batch of pet <U3\(1,\): KeyError"):
        apply_transforms([Vocabulary("pet", words)], {"pet": np.array(["cow"])})


@pytest.mark.parametrize("result", [None, [1], {"a": [1]}])
def test_a_transform_must_give_a_dict_of_arrays(result):
    class Bad(Upper):
        def apply(self, batch):
            return result

    with pytest.raises(InputError, match="host transform 'upper' must return a dict of numpy arrays"):
        apply_transforms([Bad()], {"a": np.zeros(1)})


def test_what_is_no_transform_is_refused():
    assert isinstance(Upper(), HostTransform)
    with pytest.raises(ArgumentTypeError, match="is not a HostTransform"):
        with_transforms(lambda: [], features=[np.char.upper])


def test_what_is_saved_is_read_back_and_does_the_same(words, tmp_path):
    transforms = [Upper(), Vocabulary("pet", words, offset=5), Vocabulary("n", words)]
    save_transforms(transforms, tmp_path / "assets" / "transforms")
    words.unlink()
    loaded = load_transforms(tmp_path / "assets" / "transforms", LOOKUP)
    assert [t.name for t in loaded] == ["upper", "vocabulary", "vocabulary"]
    assert [t.config() for t in loaded] == [t.config() for t in transforms]
    batch = {"pet": np.array(["emu", "cat"])}
    assert loaded[1].apply(batch)["pet"].tolist() == transforms[1].apply(batch)["pet"].tolist() == [7, 5]


def test_only_data_is_written(words, tmp_path):
    save_transforms([Vocabulary("pet", words)], tmp_path / "out")
    written = {p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert written == {"transforms.json", "0_vocabulary/words/words.txt"}
    entry = json.loads((tmp_path / "out" / "transforms.json").read_text())["transforms"][0]
    assert entry["name"] == "vocabulary"
    assert entry["version"] == 2
    assert entry["config"] == {"feature": "pet", "offset": 0}


def test_another_version_of_the_class_is_refused(words, tmp_path):
    class Newer(Vocabulary):
        version = 3

    save_transforms([Vocabulary("pet", words)], tmp_path / "out")
    with pytest.raises(ExportError, match="saved by version 2 and the installed package has version 3"):
        load_transforms(tmp_path / "out", {"vocabulary": Newer}.__getitem__)


def test_a_damaged_file_is_refused(words, tmp_path):
    save_transforms([Vocabulary("pet", words)], tmp_path / "out")
    (tmp_path / "out" / "0_vocabulary" / "words" / "words.txt").write_text("dog cat emu\n")
    with pytest.raises(ExportError, match="missing or damaged"):
        load_transforms(tmp_path / "out", LOOKUP)


def test_a_path_that_leaves_the_directory_is_refused(words, tmp_path):
    save_transforms([Vocabulary("pet", words)], tmp_path / "out")
    index = tmp_path / "out" / "transforms.json"
    saved = json.loads(index.read_text())
    saved["transforms"][0]["files"]["words"]["path"] = "../words.txt"
    index.write_text(json.dumps(saved))
    with pytest.raises(ExportError, match="names a file outside its directory"):
        load_transforms(tmp_path / "out", LOOKUP)


@pytest.mark.parametrize("content", [None, "not json", "{}", "[]"])
def test_a_directory_without_a_readable_index_is_refused(content, tmp_path):
    if content is not None:
        (tmp_path / "transforms.json").write_text(content)
    with pytest.raises(ExportError, match="holds no host transforms that can be read"):
        load_transforms(tmp_path, LOOKUP)


def test_saved_arguments_that_the_class_refuses_are_shown(tmp_path):
    save_transforms([Upper()], tmp_path)
    with pytest.raises(ExportError, match=r"'upper' cannot be made from {}: TypeError"):
        load_transforms(tmp_path, lambda name: type("Needs", (Upper,), {"__init__": lambda self, more: None}))


def test_what_cannot_be_saved_is_refused(words, tmp_path):
    class Odd(Upper):
        def config(self):
            return {"value": float("nan")}

    with pytest.raises(ExportError, match="'upper' has a configuration that is not JSON"):
        save_transforms([Odd()], tmp_path / "a")
    gone = Vocabulary("pet", words)
    words.unlink()
    with pytest.raises(ExportError, match="'vocabulary' names a file that cannot be copied: words"):
        save_transforms([gone], tmp_path / "b")
