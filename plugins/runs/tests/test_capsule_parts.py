"""The parts of the record of a start: packages, code, data."""

import subprocess

import numpy as np
import pytest

from estimator_core.inputs import Batch, InputPosition
from estimator_runs.capsule.code import program_code
from estimator_runs.capsule.data import changed_place, data_fingerprint, file_digest
from estimator_runs.capsule.differences import capsule_differences
from estimator_runs.capsule.packages import environment, installed, requirements
from estimator_runs.capsule.weights import first_difference


class Files:
    """An input of files."""

    def __init__(self, *files):
        self.files = files


def batch():
    return Batch(
        features={"x": np.ones(2, np.float32)},
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
    from estimator_core.inputs import numpy_input_fn

    x = np.arange(100, dtype=np.float32)
    found = data_fingerprint(numpy_input_fn({"x": x}, x, batch_size=2, shuffle=False), batch())
    assert found["array features/x"]["size"] == 400
    opened = []
    assert set(data_fingerprint(lambda: opened.append(1), batch())) == {"batch of step 1"}
    assert not opened


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


def test_only_packages_in_use_differ():
    old = {"packages": {"python": "3.11.1", "used": {"version": "1", "code": "x"}, "tool": {"version": "1"}}}
    new = {"packages": {"python": "3.11.1", "used": {"version": "1", "code": "y"}, "tool": {"version": "2"}}}
    (found,) = capsule_differences(old, new)
    assert (found.kind, found.name) == ("package", "used")
    assert "other code" in found.text


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
    assert "with changes that git did not tell in time)" in str(told)


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
