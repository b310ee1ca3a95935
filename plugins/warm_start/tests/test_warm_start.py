"""Tests of warm starts: the selected variables, those that fit, and the report (fault 14)."""

import dataclasses
import re

import jax
import numpy as np
import pytest

from estimator_core.errors import ArgumentError, ArgumentTypeError, VariableError
from estimator_core.model import VariableSpec
from estimator_warm_start import VocabInfo, WarmStartSettings
from estimator_warm_start.settings import warm_start


def make_spec(name, shape, *, dtype="float32", trainable=True):
    return VariableSpec(
        name, shape, np.dtype(jax.dtypes.canonicalize_dtype(dtype)), jax.nn.initializers.zeros, trainable
    )


SPECS = {
    spec.name: spec
    for spec in (
        make_spec("encoder/kernel", (2, 3)),
        make_spec("encoder/bias", (3,)),
        make_spec("encoder/mean", (3,), trainable=False),
        make_spec("head/kernel", (3, 1)),
    )
}
OLD = {
    "encoder/kernel": np.full((2, 3), 1.0, np.float32),
    "encoder/bias": np.full((3,), 2.0, np.float32),
    "encoder/mean": np.full((3,), 3.0, np.float32),
    "old_head/kernel": np.full((3, 1), 4.0, np.float32),
}


def reader(path):
    return {"old": OLD}[path]


def start(settings, specs=SPECS, read=reader):
    settings = settings if isinstance(settings, WarmStartSettings) else WarmStartSettings(settings)
    with_reader = dataclasses.replace(settings, reader=settings.reader or read)
    return warm_start(with_reader, specs, key=lambda path: jax.random.key(len(path)))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("pattern", [".*", [".*"], "(?!head)"])
def test_records_of_the_earlier_model_are_left_out(pattern, size):
    """An earlier model has other vocabularies and classes. Its records replaced those of the new model."""
    record = VariableSpec("data_contract", (2,), np.dtype("uint8"), np.zeros(2, np.uint8), False)
    kernel = SPECS["encoder/kernel"]
    old = {**OLD, "data_contract": np.ones(size, np.uint8)}
    specs = {kernel.name: kernel, record.name: record}
    values, report = start(WarmStartSettings("old", vars_to_warm_start=pattern), specs, read=lambda path: old)
    assert set(values) == {kernel.name}
    assert report.not_loaded == {"data_contract": "a record of this model"}
    if size == 2:
        for named in ("data_contract", [record]):
            values, _ = start(WarmStartSettings("old", vars_to_warm_start=named), specs, read=lambda path: old)
            assert set(values) == {"data_contract"}


def test_a_path_loads_all_that_matches_state_too_and_reports_the_rest():
    values, report = start("old")
    assert set(values) == {"encoder/kernel", "encoder/bias", "encoder/mean"}
    np.testing.assert_array_equal(values["encoder/mean"], OLD["encoder/mean"])
    assert report.loaded == ("encoder/kernel", "encoder/bias", "encoder/mean")
    assert report.not_loaded == {"head/kernel": "not in old"}
    assert str(report).splitlines() == [
        "variable        shape  loaded  from                   remark",
        "encoder/kernel  [2,3]  yes     encoder/kernel of old",
        "encoder/bias    [3]    yes     encoder/bias of old",
        "encoder/mean    [3]    yes     encoder/mean of old",
        "head/kernel     [3,1]  no      initializer            not in old",
    ]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("encoder/.*s", {"encoder/bias"}),
        ("encoder", {"encoder/kernel", "encoder/bias", "encoder/mean"}),
        (["encoder/k", "encoder/b"], {"encoder/kernel", "encoder/bias"}),
        ([SPECS["encoder/bias"]], {"encoder/bias"}),
    ],
)
def test_patterns_match_from_the_start_of_the_path(chosen, expected):
    values, report = start(WarmStartSettings("old", vars_to_warm_start=chosen))
    assert set(values) == expected
    assert set(report.not_loaded.values()) == {"not among vars_to_warm_start"}


def test_names_that_were_others():
    values, _ = start(WarmStartSettings("old", var_name_to_prev_var_name={"head/kernel": "old_head/kernel"}))
    np.testing.assert_array_equal(values["head/kernel"], OLD["old_head/kernel"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"vars_to_warm_start": "head"},
            r"Tensor 'head/kernel'.* is not found in the checkpoint old\. Did you mean 'old_head/",
        ),
        ({"vars_to_warm_start": ["encodr"]}, "no variable matches 'encodr'"),
        (
            {"var_name_to_prev_var_name": {"heda/kernel": "x"}},
            "You provided the following variables in var_name_to_prev_var_name that were not used: heda/kernel",
        ),
        (
            {"var_name_to_prev_var_name": {"head/kernel": "hed"}},
            "Tensor 'hed', for variable 'head/kernel', is not found",
        ),
        (
            {"vars_to_warm_start": "encoder/b", "var_name_to_prev_var_name": {"head/kernel": "x"}},
            "viable variable names: enc",
        ),
        ({"vars_to_warm_start": None}, "would load nothing"),
    ],
)
def test_what_cannot_be_found_is_named(settings, message):
    with pytest.raises(VariableError, match=message):
        start(WarmStartSettings("old", **settings))


def test_nothing_in_common_is_an_error():
    with pytest.raises(VariableError, match="would load nothing"):
        start("old", read=lambda path: {"other": np.zeros(1)})


def test_another_shape_is_an_error_that_names_both():
    specs = {**SPECS, "encoder/bias": make_spec("encoder/bias", (4,))}
    with pytest.raises(
        VariableError, match=r"Shape of variable 'encoder/bias' \(\[4\]\) doesn't match .*'encoder/bias' \(\[3\]\)"
    ):
        start("old", specs)


def test_other_shapes_are_refused_together_with_the_settings_that_load_the_rest():
    specs = {**SPECS, **{path: make_spec(path, (5,)) for path in ("encoder/bias", "encoder/mean")}}
    with pytest.raises(VariableError) as caught:
        start("old", specs)
    message = str(caught.value)
    assert [name in message for name in ("'encoder/bias' ([5])", "'encoder/mean' ([5])")] == [True, True]
    pattern = re.search(r"set vars_to_warm_start='(.*)' of", message)[1]
    assert sorted(start(WarmStartSettings("old", vars_to_warm_start=pattern), specs)[0]) == ["encoder/kernel"]
    with pytest.raises(VariableError, match="leave these variables out of vars_to_warm_start"):
        start(WarmStartSettings("old", vars_to_warm_start="encoder/"), specs)


def test_precision_is_converted_and_reported_but_not_the_kind_of_number():
    specs = {"encoder/bias": make_spec("encoder/bias", (3,), dtype="bfloat16")}
    values, report = start("old", specs)
    assert values["encoder/bias"].dtype == specs["encoder/bias"].dtype
    assert report.rows[0].reason == "cast from float32"
    with pytest.raises(VariableError, match="numbers of another kind are not converted"):
        start("old", {"encoder/bias": make_spec("encoder/bias", (3,), dtype="int32")})


def test_settings_that_cannot_be():
    with pytest.raises(ArgumentError, match="`ckpt_to_initialize_from` MUST be set in WarmStartSettings"):
        WarmStartSettings("")
    for chosen in (3, [3], {"a": 1}):
        with pytest.raises(ArgumentTypeError, match="vars_to_warm_start must be"):
            WarmStartSettings("old", vars_to_warm_start=chosen)
    for chosen in ("(", ["encoder/", "("]):
        with pytest.raises(ArgumentError, match=r"vars_to_warm_start: '\(' is not a regular expression: .*position 0"):
            WarmStartSettings("old", vars_to_warm_start=chosen)
    assert dataclasses.astuple(WarmStartSettings("old", ".*", None, None)) == ("old", ".*", {}, {}, None)


def test_a_vocabulary_moves_rows_by_token(tmp_path):
    new, old = tmp_path / "new.txt", tmp_path / "old.txt"
    new.write_text("c\nd\na\n", encoding="utf-8")
    old.write_text("a\nb\nc\n", encoding="utf-8")
    specs = {"table": make_spec("table", (4, 2))}
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    info = VocabInfo(str(new), 3, 1, str(old))
    settings = WarmStartSettings("old", None, {"table": info})
    values, report = start(settings, specs, lambda path: {"table": table})
    assert values["table"].tolist() == [[4, 5], [0, 0], [0, 1], [0, 0]]
    assert report.rows[0].reason == "vocabulary remapped"

    columns = dataclasses.replace(info, axis=1, backup_initializer=jax.nn.initializers.constant(9.0))
    specs = {"table": make_spec("table", (2, 4))}
    settings = WarmStartSettings("old", None, {"table": columns})
    values, _ = start(settings, specs, lambda path: {"table": table.T})
    assert values["table"].T.tolist() == [[4, 5], [9, 9], [0, 1], [9, 9]]


def test_rows_of_new_tokens_change_no_other_row():
    """Rows move as numbers of the variable's dtype, whatever dtype the backup_initializer returns."""
    info = VocabInfo(["b", "c"], 2, 0, ["a", "b"], backup_initializer=lambda *_: np.ones((2, 1), np.float64))
    specs = {"table": make_spec("table", (2, 1))}
    settings = WarmStartSettings("old", None, {"table": info})
    values, _ = start(settings, specs, lambda path: {"table": np.array([[0.5], [0.25]], np.float32)})
    assert values["table"].dtype == np.float32
    assert values["table"].tolist() == [[0.25], [1]]

    for wrong, message in ((np.ones((2, 1), int), "int64"), (np.ones(2), r"\[2\]\) of its backup_initializer")):
        another = dataclasses.replace(info, backup_initializer=lambda *_, wrong=wrong: wrong)
        with pytest.raises(VariableError, match=message):
            start(WarmStartSettings("old", None, {"table": another}), specs, lambda path: {"table": np.ones((2, 1))})


def test_a_vocabulary_does_not_convert_numbers_of_another_kind():
    specs = {"table": make_spec("table", (2, 1), dtype="int32", trainable=False)}
    settings = WarmStartSettings("old", None, {"table": VocabInfo(["a", "b"], 2, 0, ["a", "b"])})
    with pytest.raises(VariableError, match="numbers of another kind are not converted"):
        start(settings, specs, lambda path: {"table": np.full((2, 1), 0.5, np.float32)})


def test_tokens_of_lists_are_those_of_files(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("10\n20\n")
    for listed in ([20, 10], [b"20", b"10"], np.array([20, 10]), np.array(["20", "10"])):
        info = VocabInfo(listed, 2, 0, path)
        assert info.remap(np.array([[1.0], [2.0]]), (2, 1), np.zeros((2, 1))).tolist() == [[2], [1]]
    path.write_bytes("\u00e4\n\u00f6\n".encode("latin-1"))
    with pytest.raises(ArgumentError, match=r"vocab\.txt' is not UTF-8 text"):
        VocabInfo(["10", "20"], 2, 0, path).remap(np.zeros((2, 1)), (2, 1), np.zeros((2, 1)))


@pytest.mark.parametrize("chosen", [None, []])
def test_settings_that_choose_nothing_are_told_so(chosen):
    with pytest.raises(VariableError, match="chooses no variable"):
        start(WarmStartSettings("old", chosen))


def test_only_the_part_of_a_vocabulary_that_was_used_counts():
    info = VocabInfo(["a", "b", "c"], 2, 0, ["c", "b", "a"], old_vocab_size=2)
    moved = info.remap(np.array([[1.0], [2.0]]), (2, 1), np.zeros((2, 1)))
    assert moved.tolist() == [[0], [2]]


def test_tokens_are_lines_and_nothing_else(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("a\u2028b\r\nc\x85\n".encode())
    info = VocabInfo(path, 2, 0, ["c\x85", "a\u2028b"])
    assert info.remap(np.array([[1.0], [2.0]]), (2, 1), np.zeros((2, 1))).tolist() == [[2], [1]]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"axis": 2}, ArgumentError, "0 .rows. or 1 .columns."),
        ({"new_vocab_size": 0}, ArgumentError, "new_vocab_size must be at least 1"),
        ({"num_oov_buckets": -1}, ArgumentError, "num_oov_buckets must be at least 0"),
        ({"new_vocab_size": 5}, VariableError, "new_vocab_size is 5, but new_vocab has 3 tokens"),
        ({"old_vocab_size": 5}, VariableError, "old_vocab_size is 5, but old_vocab has 3 tokens"),
        ({"num_oov_buckets": 2}, VariableError, r"its axis 0 must be 5"),
        ({"old_vocab": list("abcdefgh")}, VariableError, "Axis 0 must have room"),
        ({"backup_initializer": 0.5}, ArgumentTypeError, r"backup_initializer=0.5\): give a function"),
        (
            {"backup_initializer": lambda shape, dtype=None, partition_info=None: np.zeros(shape, dtype)},
            ArgumentTypeError,
            r"a function of \(shape, dtype, partition_info\), but is called with \(key, shape, dtype\)",
        ),
        ({"backup_initializer": lambda shape, dtype: 0}, ArgumentTypeError, r"a function of \(shape, dtype\), but"),
        ({"old_vocab": "nowhere.txt"}, ArgumentError, "no vocabulary file 'nowhere.txt'"),
    ],
)
def test_vocabularies_that_do_not_fit(change, error, message):
    arguments = {
        "new_vocab": list("abc"),
        "new_vocab_size": 3,
        "num_oov_buckets": 0,
        "old_vocab": list("abd"),
        **change,
    }

    def remap():
        return VocabInfo(**arguments).remap(np.zeros((3, 2)), (3, 2), np.zeros((3, 2)))

    with pytest.raises(error, match=message):
        remap()


def test_an_earlier_model_of_another_kind_is_read_by_the_reader_given():
    def refuse(path):
        raise AssertionError(path)

    settings = WarmStartSettings("foreign", reader=lambda path: {"head/kernel": np.full((3, 1), 5.0, np.float32)})
    values, report = start(settings, read=refuse)
    assert values.keys() == {"head/kernel"}
    assert report.not_loaded["encoder/bias"] == "not in foreign"
