"""Tests of tokens against the pure-Python BertTokenizer of transformers 4, on ten thousand lines."""

import hashlib
import json
import unicodedata

import numpy as np
import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from estimator_canned_bert import BertTokens, Tokenizer, build_vocabulary
from estimator_core.errors import ArgumentError
from plugins.canned_bert.tests.directories import RECORDED
from plugins.canned_bert.tests.text_lines import BLOCK, LINES, lines, vocabulary

KNOWN = json.loads((RECORDED / "tokens.json").read_text())


@pytest.fixture(scope="module")
def vocabulary_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in vocabulary()), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["uncased", "cased"])
def test_ten_thousand_lines_are_the_same(vocabulary_file, name):
    if unicodedata.unidata_version != KNOWN["unicode"]:
        pytest.skip(f"recorded with Unicode {KNOWN['unicode']}, this Python has {unicodedata.unidata_version}")
    ids = Tokenizer(vocabulary_file, do_lower_case=name == "uncased").encode(lines())
    for number, expected in KNOWN[name]["sample"].items():
        assert ids[int(number)] == expected, lines()[int(number)]
    blocks = [ids[start : start + BLOCK] for start in range(0, LINES, BLOCK)]
    hashes = [hashlib.sha256(json.dumps(block).encode()).hexdigest()[:16] for block in blocks]
    assert hashes == KNOWN[name]["blocks"]
    assert sum(map(len, ids)) > 300_000


def test_the_lines_are_of_every_kind():
    text = lines()
    assert len(text) == LINES
    assert "" in text
    assert max(len(word) for line in text for word in line.split()) >= 2000
    found = {unicodedata.category(character) for line in text for character in line}
    assert {"Cc", "Cf", "Mn", "Lo", "So", "Zs", "Zl", "Po", "Sc", "Cn"} <= found


def test_a_tokenizer_file_is_used_as_it_is(tmp_path):
    pieces = [("<pad>", 0.0), ("<unk>", -5.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("\u2581hel", -1.0), ("lo", -1.5)]
    rules = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=1))
    rules.pre_tokenizer = pre_tokenizers.Metaspace()
    rules.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer(tmp_path)
    assert tokenizer.encode(["hello", ""]) == [[4, 5], []]
    assert (tokenizer.pad_id, tokenizer.unknown_id, tokenizer.first_id, tokenizer.separator_id) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("told", "given", "ids"),
    [
        (None, None, [5]),
        ({}, None, [5]),
        ({"do_lower_case": True, "strip_accents": None}, None, [5]),
        ({"do_lower_case": False}, None, [6]),
        ({"do_lower_case": False, "strip_accents": False, "tokenize_chinese_chars": True}, None, [6]),
        ({"do_lower_case": False}, True, [5]),
        (None, False, [6]),
    ],
)
def test_the_configuration_of_a_vocabulary_tells_whether_it_is_cased(tmp_path, told, given, ids):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwarm\nWarm\n")
    if told is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(told))
    options = {} if given is None else {"do_lower_case": given}
    tokenizer = Tokenizer(tmp_path, **options)
    assert tokenizer.encode(["Warm"]) == [ids]
    transform = BertTokens(tmp_path / "vocab.txt", max_seq_length=3, **options)
    assert transform.config()["do_lower_case"] == tokenizer.do_lower_case == (ids == [5])
    assert transform.apply({"text_a": np.array(["Warm"], object)})["input_ids"].tolist() == [[2, *ids, 3]]


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ("[1", r"tokenizer_config\.json cannot be read: .*Download it again"),
        ('{"do_lower_case": true, "strip_accents": false}', "sets strip_accents=False"),
        ('{"tokenize_chinese_chars": false}', "sets tokenize_chinese_chars=False"),
    ],
)
def test_a_configuration_that_is_not_followed_is_refused(tmp_path, told, message):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nwarm\n")
    (tmp_path / "tokenizer_config.json").write_text(told)
    with pytest.raises(ArgumentError, match=message):
        Tokenizer(tmp_path)
    assert Tokenizer(tmp_path, do_lower_case=True).encode(["Warm"]) == [[4]]


def test_wrong_vocabularies_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="There is no vocabulary at"):
        Tokenizer(tmp_path)
    path = tmp_path / "vocab.txt"
    for content, message in ((b"", "is empty"), (b"[PAD]\n\xff\n", "is not UTF-8"), (b"a\nb\n", r"no token \[PAD\]")):
        path.write_bytes(content)
        with pytest.raises(ArgumentError, match=message):
            Tokenizer(path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ArgumentError, match=r"tokenizer\.json is not a tokenizer"):
        Tokenizer(tmp_path / "tokenizer.json")


def test_a_table_has_a_row_for_every_id_where_a_token_is_there_twice(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\ngood\ngood\nfilm\n")
    tokenizer = Tokenizer(tmp_path)
    assert tokenizer.encode(["good film"]) == [[5, 6]]
    assert tokenizer.vocabulary_size == 7


def test_a_vocabulary_is_built_from_texts(tmp_path):
    texts = ["the cat sat on the mat", "the dog sat on the log"] * 5
    path = build_vocabulary(texts, tmp_path / "vocab.txt", size=60)
    tokenizer = Tokenizer(path)
    (ids,) = tokenizer.encode(["The dog sat"])
    assert tokenizer.unknown_id not in ids
    assert len(ids) < 6, "whole words were not learnt"
    assert build_vocabulary(texts, tmp_path / "again.txt", size=60).read_text() == path.read_text()
    with pytest.raises(ArgumentError, match="no texts"):
        build_vocabulary([], tmp_path / "none.txt")
