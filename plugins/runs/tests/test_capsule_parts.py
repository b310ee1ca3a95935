"""Tests of the parts of the record of a start: packages, code and data."""

import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

from estimator_core.inputs import Batch, InputPosition, numpy_input_fn
from estimator_runs.capsule.arrays import leaves_digest
from estimator_runs.capsule.code import program_code
from estimator_runs.capsule.data import changed_place, data_fingerprint, file_digest
from estimator_runs.capsule.differences import capsule_differences
from estimator_runs.capsule.packages import environment, installed, requirements
from estimator_runs.capsule.weights import first_difference


class Files:
    """An input that reads files."""

    def __init__(self, *files):
        self.files = files


def batch(features=None):
    return Batch(
        features=features or {"x": np.ones(2, np.float32)},
        labels=np.zeros(2, np.int32),
        host={},
        size=2,
        position=InputPosition(""),
    )


def test_a_changed_byte_of_a_file_is_found_by_its_place(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(bytes(10_000))
    before = data_fingerprint(Files(path), batch())
    content = bytearray(10_000)
    content[5000] = 1
    path.write_bytes(bytes(content))
    after = data_fingerprint(Files(path), batch())
    (found,) = capsule_differences({"data": before}, {"data": after})
    assert str(found) == f"data file {path}: bytes 4867 to 5024"


def test_files_beyond_the_limit_keep_their_size(tmp_path, monkeypatch):
    monkeypatch.setattr("estimator_runs.capsule.data.MOST_BYTES", 10)
    for name, size in (("a", 8), ("b", 8)):
        (tmp_path / name).write_bytes(bytes(size))
    found = data_fingerprint(Files(tmp_path / "a", tmp_path / "b"), batch())
    assert "sha256" in found[f"file {tmp_path / 'a'}"]
    assert found[f"file {tmp_path / 'b'}"] == {"size": 8}


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 4097])
def test_pieces_cover_a_file_of_any_size(tmp_path, size):
    path = tmp_path / "file"
    path.write_bytes(bytes(size))
    before = file_digest(path)
    assert len(before["pieces"]) == -(-size // before["step"])
    if size:
        path.write_bytes(bytes(size - 1) + b"x")
        assert changed_place(before, file_digest(path)).endswith(f"to {size}")


def test_arrays_are_digested_whole_and_an_unknown_input_is_not_opened_again():
    x = np.arange(100, dtype=np.float32)
    found = data_fingerprint(numpy_input_fn({"x": x}, x, batch_size=2, shuffle=False), batch())
    assert found["array features/x"]["size"] == 400
    opened = []
    assert set(data_fingerprint(lambda: opened.append(1), batch())) == {"batch of step 1"}
    assert not opened


@pytest.mark.parametrize("order", ["C", "F"])
def test_of_large_arrays_a_sample_is_digested_and_said_so(monkeypatch, order):
    monkeypatch.setattr("estimator_runs.capsule.data.MOST_BYTES", 6_400)
    x = np.asarray(np.arange(40_000, dtype=np.float32).reshape(100, 400), order=order)
    y = np.arange(100)

    def found():
        digests = data_fingerprint(numpy_input_fn({"x": x}, y, batch_size=2, shuffle=False), batch())
        return {name: digest for name, digest in digests.items() if name.startswith("array")}

    before = found()
    assert "sampled" not in before["array labels"]
    assert (before["array features/x"]["size"], len(before["array features/x"]["pieces"])) == (160_000, 64)
    assert 5_000 < before["array features/x"]["sampled"] <= 6_000
    x[50, 0] += 1  # the first number of piece 32
    (told,) = capsule_differences({"data": before}, {"data": found()})
    assert str(told) == "data array features/x: bytes 80000 to 82500"


def test_a_sample_of_an_array_is_the_same_in_any_layout():
    x = np.random.default_rng(1).normal(size=(37, 53))
    rows, columns = (leaves_digest([("x", np.asarray(x, order=order))], most=4_000) for order in "CF")
    assert rows == columns
    assert rows["sampled"] <= 4_000
    assert "sampled" not in leaves_digest([("x", x), ("y", x[:1])], most=x.nbytes + 1_000)


def test_arrays_of_objects_have_the_size_of_their_text():
    words = np.array(["a" * 10, "b" * 20], dtype=object)
    whole = leaves_digest([("x", words)], most=1_000)
    assert whole["size"] == len("'aaaaaaaaaa'\n") + len("'bbbbbbbbbbbbbbbbbbbb'\n")
    assert "sampled" not in whole
    words[1] = "b" * 19 + "c"
    assert changed_place(whole, leaves_digest([("x", words)], most=1_000)) == "bytes 0 to 36"
    many = np.array(["word"] * 10_000, dtype=object)
    cut = leaves_digest([("x", many)], most=640)
    assert cut["sampled"] == cut["size"] == 640


def test_a_copy_of_what_is_at_a_url_has_one_name_in_every_process(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    paths = [tmp_path / f"estimator-copy-{one}" / "part" / "rows.csv" for one in "ab"]
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_text("1\n")
    first, second = (data_fingerprint(Files(path), batch()) for path in paths)
    assert "file part/rows.csv of a URL" in first
    assert first == second
    assert len(data_fingerprint(Files(*paths), batch())) == 3


class Spanning:
    """An array that is partly on another process."""

    is_fully_addressable = False

    def __init__(self, *parts):
        self.addressable_shards = [SimpleNamespace(data=np.asarray(part, np.float32)) for part in parts]

    def __array__(self, *args, **kwargs):
        raise RuntimeError("parts of it are in another process")


def test_of_a_batch_of_several_processes_the_own_part_is_digested():
    def found(*parts):
        return data_fingerprint(Files(), batch({"x": Spanning(*parts)}))

    assert found([[1.0]], [[2.0]]) == found([[1.0]], [[2.0]])
    assert found([[1.0]], [[2.0]]) != found([[1.0]], [[3.0]])


def test_packages_in_use_have_a_hash_and_come_back_as_requirements():
    found = environment(installed())
    assert found["numpy"]["code"].startswith("sha256:")
    assert f"numpy=={np.__version__}" in list(requirements(found))
    origins = {
        "a": {"version": "1", "origin": {"url": "file:///src/a", "dir_info": {"editable": True}}},
        "b": {"version": "1", "origin": {"url": "file:///b-1-py3-none-any.whl", "archive_info": {}}},
        "c": {"version": "1", "origin": {"url": "https://host/c", "vcs_info": {"vcs": "git", "commit_id": "1f"}}},
    }
    assert list(requirements(origins)) == ["-e /src/a", "b @ file:///b-1-py3-none-any.whl", "c @ git+https://host/c@1f"]


def test_requirements_keep_subdirectories_and_paths_with_spaces():
    git = {"vcs": "git", "commit_id": "1f"}
    origins = {
        "a": {"version": "1", "origin": {"url": "file:///my%20src/a", "dir_info": {"editable": True}}},
        "b": {"version": "1", "origin": {"url": "https://host/b", "vcs_info": git, "subdirectory": "core"}},
        "c": {"version": "1", "origin": {"url": "https://host/c", "archive_info": {}, "subdirectory": "core"}},
        "d": {"version": "1", "origin": {"url": "file:///d", "dir_info": {"editable": True}, "subdirectory": "core"}},
    }
    assert list(requirements(origins)) == [
        "-e /my src/a",
        "b @ git+https://host/b@1f#subdirectory=core",
        "c @ https://host/c#subdirectory=core",
        "-e /d/core",
    ]


def test_only_packages_in_use_differ():
    old = {"packages": {"python": "3.11.1", "used": {"version": "1", "code": "x"}, "tool": {"version": "1"}}}
    new = {"packages": {"python": "3.11.1", "used": {"version": "1", "code": "y"}, "tool": {"version": "2"}}}
    (found,) = capsule_differences(old, new)
    assert (found.kind, found.name) == ("package", "used")
    assert "different code" in found.text


def commit_all(folder):
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)


SECRETS = """\
api_key: str = "abc123"
{"api_key": "abc123",
api_key: abc123
Client(api_key="abc123")
os.environ["WANDB_API_KEY"] = "abc123"
export WANDB_API_KEY=abc123
api_key = 'abc123'
use("abc123")  # the token
"""


def test_the_commit_and_the_diff_without_secrets(tmp_path):
    program, settings = tmp_path / "program.py", tmp_path / "settings.txt"
    program.write_text("rate = 1\n")
    settings.write_text(f"{SECRETS}old = 1\n")
    commit_all(tmp_path)
    program.write_text(f"rate = 2\n{SECRETS}")
    settings.write_text(f"{SECRETS}old = 2\n")
    found = program_code(program, [])
    assert len(found["git"]["commit"]) == 40
    assert found["git"]["diff_changed"] is True
    assert "+rate = 2" in found["git"]["diff"]
    assert "+old = 2" in found["git"]["diff"]
    assert "\n+***\n" in found["git"]["diff"]
    assert "\n ***\n" in found["git"]["diff"]
    assert "abc123" not in found["git"]["diff"]
    assert found["files"]["program.py"].startswith("sha256:")


def test_a_diff_that_takes_too_long_leaves_the_rest_of_the_record(tmp_path, monkeypatch):
    program = tmp_path / "program.py"
    program.write_text("rate = 1\n")
    commit_all(tmp_path)
    asked = subprocess.run

    def slow(command, **options):
        if "diff" in command:
            raise subprocess.TimeoutExpired(command, options["timeout"])
        return asked(command, **options)

    monkeypatch.setattr(subprocess, "run", slow)
    found = program_code(program, [])
    assert set(found["git"]) == {"commit", "not_read", "untracked"}
    assert "diff failed or took too long" in found["git"]["not_read"]
    after = {"files": {**found["files"], "program.py": "sha256:0"}}
    (told,) = capsule_differences({"code": found}, {"code": after})
    assert "with changes that git did not report in time)" in str(told)


def test_code_that_git_does_not_track_is_said_to_be_nowhere(tmp_path):
    program, other = tmp_path / "program.py", tmp_path / "other.py"
    other.write_text("")
    commit_all(tmp_path)
    program.write_text("rate = 1\n")
    for path, told in (
        (program, "program.py: has changed (git did not track it: neither commit "),
        (other, "other.py: has changed (it was commit "),
    ):
        before = program_code(path, [])
        after = {"files": {**before["files"], path.name: "sha256:0"}}
        (found,) = capsule_differences({"code": before}, {"code": after})
        assert told in str(found)


def test_the_first_bit_that_differs_is_named(monkeypatch):
    old = {"w": np.array([[1.0, 0.0]], np.float32)}
    new = {"w": np.array([[1.0, -0.0]], np.float32)}
    monkeypatch.setattr("estimator_runs.capsule.weights.load_variables", {"a": old, "b": new}.__getitem__)
    assert first_difference("a", "a") is None
    told = first_difference("a", "b")
    assert told == "variable 'w': 1 of 2 values differ, the first at (0, 1): was 0.0, now -0.0"
