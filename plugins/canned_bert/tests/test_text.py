"""Tests of files as batches: layouts, truncation, buckets, the cache, positions, and errors with file and line."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import estimator_core as ec
from estimator_canned_bert import BertTokens, ClassifierData
from estimator_canned_bert.text.batches import BatchPlan, choose_buckets
from estimator_canned_bert.text.layouts import TASKS
from estimator_canned_bert.text.sequences import kept_lengths
from estimator_core.errors import ArgumentError, InputError
from estimator_core.inputs import open_input
from estimator_core.testing import HostTransformSuite

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
    return tmp_path


def write(folder, name, lines):
    (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def data_of(folder, **options):
    return ClassifierData(folder, vocab=folder, **{"max_seq_length": 8, **options})


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 40))
def test_pairs_are_cut_as_in_the_original(first, second, room):
    a, b = list(range(first)), list(range(second))
    while len(a) + len(b) > room:  # run_classifier._truncate_seq_pair
        (a if len(a) > len(b) else b).pop()
    assert kept_lengths(first, second, room) == (len(a), len(b))


@pytest.mark.parametrize(
    ("file", "lines"),
    [
        ("train.tsv", ["yes\talpha beta\tgamma", "no\tdelta\tepsilon"]),
        ("train.tsv", ["id\tsentence1\tsentence2\tlabel", "0\talpha beta\tgamma\tyes", "1\tdelta\tepsilon\tno"]),
        ("train.csv", ["text_b,text_a,label", '"gamma","alpha beta",yes', "epsilon,delta,no"]),
        (
            "train.jsonl",
            [
                '{"sentence1": "alpha beta", "sentence2": "gamma", "label": "yes"}',
                '{"sentence1": "delta", "sentence2": "epsilon", "label": "no", "id": 3}',
            ],
        ),
    ],
)
def test_every_kind_of_file_gives_the_same(folder, file, lines):
    write(folder, file, lines)
    data = data_of(folder)
    assert data.labels == ("no", "yes")
    features, labels = next(data.train.input_fn(2)())
    assert features["input_ids"].tolist() == [[2, 5, 6, 3, 7, 3, 0, 0], [2, 8, 3, 9, 3, 0, 0, 0]]
    assert features["input_mask"].tolist() == [[1] * 6 + [0] * 2, [1] * 5 + [0] * 3]
    assert features["segment_ids"].tolist() == [[0] * 4 + [1] * 2 + [0] * 2, [0] * 3 + [1] * 2 + [0] * 3]
    assert labels.tolist() == [1, 0]
    assert [(row.text_a, row.text_b, row.label) for row in data.train] == [
        ("alpha beta", "gamma", "yes"),
        ("delta", "epsilon", "no"),
    ]
    assert data.train.input_fn(2).files == (folder / file, folder / "vocab.txt")  # the record of a run digests them


GLUE = {
    "mrpc": (["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "1\t10\t11\talpha\tbeta"], 1),
    "cola": (["gj04\t1\t\talpha"], 1),
    "sst-2": (["sentence\tlabel", "alpha \t1"], 1),
    "sts-b": (["h\t" * 9 + "score", "0\t1\t2\t3\t4\t5\t6\talpha\tbeta\t3.500"], 3.5),
    "mnli": (["h\t" * 11 + "gold_label", "0\t1\t2\t3\t4\t5\t6\t7\talpha\tbeta\tx\tneutral"], 2),
    "qqp": (["id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "0\t1\t2\talpha\tbeta\t1"], 1),
    "qnli": (["index\tquestion\tsentence\tlabel", "0\talpha\tbeta\tnot_entailment"], 1),
    "rte": (["index\tsentence1\tsentence2\tlabel", "0\talpha\tbeta\tnot_entailment"], 1),
    "wnli": (["index\tsentence1\tsentence2\tlabel", "0\talpha\tbeta\t1"], 1),
}


@pytest.mark.parametrize("task", GLUE)
def test_layouts_of_glue(folder, task):
    lines, label = GLUE[task]
    write(folder, "train.tsv", lines)
    data = data_of(folder, task=task)
    (row,) = data.train
    assert row.text_a.strip() == "alpha"
    assert row.text_b == (None if TASKS[task].train.text_b is None else "beta")
    _, labels = next(data.train.input_fn(1)())
    assert labels.tolist() == [label]


def test_a_test_file_needs_no_labels(folder):
    write(folder, "train.tsv", ["yes\talpha", "no\tbeta"])
    write(folder, "test.tsv", ["gamma", "delta"])
    data = data_of(folder)
    assert next(data.test.input_fn(2)())["input_ids"][:, 1].tolist() == [7, 8]


@pytest.mark.parametrize(
    ("file", "content", "texts"),
    [
        ("test.tsv", "gamma\n\ndelta\n\n\n", ["gamma", "", "delta"]),
        ("test.tsv", "\n\ngamma\n", ["", "", "gamma"]),
        ("test.tsv", "text\n\ngamma\n", ["", "gamma"]),
        ("test.csv", 'text\ngamma\n""\ndelta\n""\n', ["gamma", "", "delta", ""]),
        ("test.csv", "gamma\n\ndelta\n", ["gamma", "delta"]),
        ("test.tsv", "gamma\t\n\ndelta\tbeta\n", ["gamma", "delta"]),
    ],
)
def test_a_prediction_belongs_to_each_text_although_it_is_empty(folder, file, content, texts):
    (folder / file).write_text(content)
    data = data_of(folder, labels=["a", "b"])
    assert [row.text_a for row in data.test] == texts
    assert len(data.test) == len(texts)


@pytest.mark.parametrize(
    "surplus",
    ["yes\talpha\nno\tbeta\t\n", "yes\talpha\n\nno\tbeta\n\n"],
)
def test_empty_columns_and_lines_beside_the_rows_do_not_count(folder, surplus):
    (folder / "train.tsv").write_text(surplus)
    assert [row.text_a for row in data_of(folder).train] == ["alpha", "beta"]


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("names", [["id", "text"], ["id", "keyword", "place", "text"]])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_a_test_file_may_have_other_columns_beside_its_text(folder, suffix, names, trained):
    def rows(names, texts):
        between = {".csv": ",", ".tsv": "\t"}.get(suffix)
        lines = [[text if name == "text" else f"{name}{row}" for name in names] for row, text in enumerate(texts)]
        if between is None:
            return [json.dumps(dict(zip(names, line, strict=True))) for line in lines]
        return [between.join(line) for line in [names, *lines]]

    if trained:
        write(folder, f"train{suffix}", rows([*names, "target"], ["alpha", "beta"]))
    write(folder, f"test{suffix}", rows(names, ["gamma", "delta"]))
    data = data_of(folder, labels=None if trained else ["a", "b"])
    assert next(data.test.input_fn(2)())["input_ids"][:, :3].tolist() == [[2, 7, 3], [2, 8, 3]]
    assert (len(data.test), data.pairs) == (2, False)


def test_a_first_row_is_no_header_where_that_of_training_is_none(folder):
    write(folder, "train.tsv", ["yes\talpha\tbeta", "no\tbeta\talpha"])
    write(folder, "test.tsv", ["text\tgamma", "delta\talpha"])
    assert len(data_of(folder).test) == 2


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("train.tsv", b"", r"train\.tsv holds no examples: it is empty"),
        ("train.tsv", b"sentence\tlabel\n", r"train\.tsv holds no examples.*except for its header"),
        ("train.tsv", b"yes\talpha\nno\tb\xe9ta\n", r"train\.tsv, line 2: not UTF-8 \(its byte 5 is 0xe9\)"),
        ("train.tsv", b"yes\talpha\tbeta\nno\tgamma\n", r"train\.tsv, line 2: column 2 \(second text\) is missing"),
        ("train.tsv", b"alpha\n", r"train\.tsv, line 1: 1 columns without known names"),
        ("train.tsv", b"sentence1\tsentence2\na\tb\n", r"train\.tsv, line 1: there is no label column"),
        ("train.tsv", b"yes\talpha\nno\tbeta\tgamma\n", r"train\.tsv, line 2: 3 columns, but .* Replace tabs"),
        ("train.csv", b"label,text\nyes,alpha, beta\n", r"train\.csv, line 2: 3 columns, but .* Quote texts"),
        ("train.csv", b"yes,alpha\nno,beta, gamma\n", r"train\.csv, line 2: 3 columns, but the first line has 2: "),
        ("train.tsv", b"yes\talpha\n\tbeta\n", r"train\.tsv, line 2: the label is empty"),
        ("train.jsonl", b'{"text": "a", "label": ""}\n', r'train\.jsonl, line 1: the label "" is neither'),
        ("train.jsonl", b'{"text": "a", "label": ["x"]}\n', r'line 1: the label \["x"\] is neither'),
        ("train.csv", b'text,label\n"alpha,yes\n', r"train\.csv, line 2: not valid CSV"),
        ("train.jsonl", b'{"text": "a", "label": "x"}\n{"text": \n', r"train\.jsonl, line 2: not valid JSON"),
        ("train.jsonl", b'{"text": "a"}\n', r"train\.jsonl, line 1: not an object with a text and a label|no label"),
        ("train.jsonl", b'{"text": 3, "label": "x"}\n', r"train\.jsonl, line 1: a text is not a string"),
        ("train.jsonl", b'{"text": null, "label": "x"}\n', r"train\.jsonl, line 1: a text is not a string"),
        (
            "train.jsonl",
            b'{"text": "a", "label": null}\n',
            r"train\.jsonl, line 1: there is no label among text, label",
        ),
        (
            "train.jsonl",
            b'{"text": "a", "label": "x"}\n\n{"text": "a", "text_b": "b", "label": "y"}\n',
            r"train\.jsonl, line 3: two texts, but the rows before it have one text\. Give every row one text",
        ),
        (
            "train.jsonl",
            b'{"text": "a", "text_b": "b", "label": "x"}\n{"text": "a", "text_b": null, "label": "y"}\n',
            r"train\.jsonl, line 2: one text, but the rows before it have two texts",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_file_and_line(folder, file, content, message):
    (folder / file).write_bytes(content)
    with pytest.raises(InputError, match=message):
        next(data_of(folder).train.input_fn(2)())


@pytest.mark.parametrize(
    ("lines", "least"), [(["yes\talpha", "no\tbeta"], 3), (["yes\talpha\tbeta", "no\teta\teta"], 4)]
)
def test_a_length_without_room_for_text_is_refused_before_training(folder, lines, least):
    write(folder, "train.tsv", lines)
    for length in (-1, 0, 1, least - 1):
        with pytest.raises(ArgumentError, match=rf"max_seq_length is {length}: .* Give {least} or more"):
            data_of(folder, max_seq_length=length)
    features, _ = next(data_of(folder, max_seq_length=least).train.input_fn(2)())
    assert (features["input_ids"] > 4).sum(axis=1).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("train", "file", "other", "message"),
    [
        (
            ["yes\talpha\tbeta", "no\teta\teta"],
            "dev.tsv",
            "yes\talpha",
            r"dev\.tsv: its rows have one text, .* two texts",
        ),
        (["yes\talpha\tbeta", "no\teta\teta"], "test.tsv", "alpha", r"test\.tsv: its rows have one text, .* two texts"),
        # Two columns of a file without labels are two texts, although one may contain labels.
        (
            ["yes\talpha", "no\tbeta"],
            "test.tsv",
            "yes\talpha",
            r"test\.tsv: its rows have two texts, .* one text\. Name",
        ),
    ],
)
def test_all_files_have_as_many_texts_as_the_training_file(folder, train, file, other, message):
    write(folder, "train.tsv", train)
    write(folder, file, [other])
    data = data_of(folder)
    assert len(data.train) == 2
    with pytest.raises(InputError, match=message):
        len(data.dev or data.test)


def test_labels_are_checked_with_file_and_line(folder):
    write(folder, "train.tsv", ["yes\talpha", "no\tbeta"])
    write(folder, "dev.tsv", ["yes\talpha", "perhaps\tbeta"])
    with pytest.raises(InputError, match=r"dev\.tsv, line 2: the label 'perhaps' is unknown\. Labels: no, yes"):
        data_of(folder).dev.input_fn(2)
    with pytest.raises(InputError, match=r"train\.tsv, line 1: the label 'yes' is not a number"):
        data_of(folder, regression=True).train.input_fn(2)
    with pytest.raises(ArgumentError, match="Task not found: 'nope'"):
        data_of(folder, task="nope")


def test_the_cache_is_read_and_noticed_when_the_file_changes(folder, monkeypatch):
    write(folder, "train.tsv", ["yes\talpha", "no\tbeta"])
    first = data_of(folder, cache_dir=folder / "cache").train.examples
    monkeypatch.setattr("estimator_canned_bert.text.tokenizer.Tokenizer.encode", None)
    again = data_of(folder, cache_dir=folder / "cache").train.examples
    np.testing.assert_array_equal(again.tokens, first.tokens)
    assert again.key == first.key
    monkeypatch.undo()
    write(folder, "train.tsv", ["yes\talpha", "no\tgamma"])
    changed = data_of(folder, cache_dir=folder / "cache").train.examples
    assert changed.tokens[4] != first.tokens[4]
    assert sorted(path.name for path in (folder / "cache").iterdir()) == sorted({first.key, changed.key})


def test_a_file_that_was_predicted_is_evaluated_with_its_labels(folder):
    for name in ("train", "dev", "test"):
        more = ["gamma,yes"] if name != "train" else []
        write(folder, f"{name}.csv", ["text,label", "alpha,yes", "beta,no", *more])
    data = data_of(folder, cache_dir=folder / "cache")
    assert len(data.test) == 3
    assert next(data.dev.input_fn(3)())[1].tolist() == [1, 0, 1]


def test_a_refused_file_leaves_nothing_in_the_cache(folder):
    write(folder, "train.tsv", ["yes\talpha", "no\tbeta", "bad"])
    with pytest.raises(InputError, match="line 3"):
        data_of(folder, cache_dir=folder / "cache", labels=["yes", "no"]).train.input_fn(2)
    assert list((folder / "cache").iterdir()) == []


@given(
    lengths=st.lists(st.integers(3, 32), min_size=1, max_size=60),
    batch_size=st.integers(1, 9),
    buckets=st.integers(1, 5),
    seed=st.one_of(st.none(), st.integers(0, 5)),
)
def test_an_epoch_has_every_example_once_in_few_shapes(lengths, batch_size, buckets, seed):
    plan = BatchPlan(batch_size=batch_size, buckets=choose_buckets(32, buckets), seed=seed, num_epochs=1)
    sizes = np.array(lengths)
    planned = plan.epoch(sizes, 0)
    seen = np.concatenate([batch.rows for batch in planned])
    assert sorted(seen.tolist()) == list(range(len(lengths)))
    for batch in planned:
        assert 1 <= len(batch.rows) <= batch_size
        assert sizes[batch.rows].max() <= batch.length
        assert batch.length in plan.buckets
    if seed is None and buckets == 1:
        assert seen.tolist() == list(range(len(lengths)))


def test_a_position_is_taken_up_and_padding_is_marked(folder):
    write(folder, "train.tsv", [f"{'yes' if n % 2 else 'no'}\t{' '.join(WORDS[: 1 + n % 6])}" for n in range(23)])
    split = data_of(folder).train
    input_fn = split.input_fn(4, shuffle=True, seed=3, buckets=3)

    def batches(position=None):
        return open_input(input_fn, mode="train", position=position)

    straight = list(itertools.islice(batches(), 20))
    assert len({batch.features["input_ids"].shape for batch in straight}) <= 3
    assert sum(batch.size for batch in straight[:6]) == 23
    assert {batch.size for batch in straight} > {4}, "no batch was filled up"
    resumed = list(itertools.islice(batches(straight[7].position), 12))
    for one, other in zip(straight[8:], resumed, strict=True):
        np.testing.assert_array_equal(one.features["input_ids"], other.features["input_ids"])
        np.testing.assert_array_equal(one.weights, other.weights)
        np.testing.assert_array_equal(one.labels, other.labels)
        assert one.position == other.position
    other_size = open_input(split.input_fn(5, shuffle=True, seed=3), mode="train", position=straight[7].position)
    next(other_size)
    assert "batch_size was 4 and is 5" in other_size.restored


class TestBertTokens(HostTransformSuite):
    @pytest.fixture(autouse=True)
    def _vocabulary(self, folder):
        self.folder = folder

    def make(self):
        return BertTokens(self.folder / "vocab.txt", max_seq_length=7, pairs=True)

    def batch(self):
        texts = ["alpha beta", "", "Gamma délta " * 9, "日本 zeta", "unknown"]
        return {
            "text_a": np.array(texts, object),
            "text_b": np.array(texts[::-1], object),
            "weight": np.arange(5, dtype=np.float32),
        }


def test_the_transform_gives_what_the_files_give(folder):
    write(folder, "train.tsv", ["yes\talpha beta gamma delta\tgamma zeta eta", "no\tbeta\tiota " * 1])
    data = data_of(folder)
    features, _ = next(data.train.input_fn(2)())
    rows = list(data.train)
    texts = {name: np.array([getattr(row, name) for row in rows], object) for name in ("text_a", "text_b")}
    made = data.tokens().apply(texts)
    for name, array in made.items():
        np.testing.assert_array_equal(array, features[name])
    receiver = data.serving_input_receiver_fn()()
    assert receiver.receiver_tensors == {name: ec.export.Feature((None,), "string") for name in texts}
    with pytest.raises(ArgumentError, match="'text_a', example 0: not UTF-8 at byte 1"):
        data.tokens().apply({"text_a": np.array([b"a\xff"], object), "text_b": np.array(["b"], object)})
    assert json.loads(json.dumps(data.tokens().config())) == data.tokens().config()
