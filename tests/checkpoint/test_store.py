"""Tests of saving and reading: a checkpoint is read as it was saved, whatever happens to the live state meanwhile."""

import subprocess
import sys
import threading
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimator_core._checkpoint import CheckpointItems, CheckpointStore, latest_checkpoint
from estimator_core._checkpoint import host_copy as host_copy_module
from estimator_core._checkpoint import store as store_module
from estimator_core._checkpoint.host_copy import is_of_the_host
from estimator_core._checkpoint.read import read_checkpoint
from estimator_core.errors import (
    ArgumentError,
    CheckpointError,
    CheckpointNotFoundError,
    HookError,
    NanLossDuringTrainingError,
)


def clock(step):
    return np.array([step, 0, 0, 0], np.uint32)


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path, small_items, assert_same):
    with CheckpointStore(tmp_path) as store:
        path = store.save(3, small_items(3)).path
    assert path == str(tmp_path / "checkpoints" / "3") == latest_checkpoint(tmp_path)
    assert_same(read_checkpoint(path), small_items(3))
    assert_same(read_checkpoint(tmp_path), small_items(3))


def test_orbax_alone_reads_the_arrays(tmp_path):
    import orbax.checkpoint as ocp

    kernel = np.arange(6, dtype=np.float32).reshape(2, 3)
    with CheckpointStore(tmp_path) as store:
        path = store.save(3, CheckpointItems(clock=clock(3), variables={"dense/kernel": kernel})).path
    read = ocp.PyTreeCheckpointer().restore(f"{path}/arrays/state")
    assert sorted(read) == ["clock", "variables"]
    np.testing.assert_array_equal(read["clock"]["clock"], clock(3))
    np.testing.assert_array_equal(read["variables"]["dense/kernel"], kernel, strict=True)


def test_items_that_were_not_asked_for_stay_empty(saved):
    items = read_checkpoint(saved, ["variables"])
    assert set(items.variables) == {"dense/kernel", "dense/bias", "empty"}
    assert (items.model_state, items.opt_state, items.input, items.hooks) == ({}, {}, None, {})
    assert int(items.clock[0]) == 2
    with pytest.raises(ArgumentError, match=r"no items \['weights'\].*'variables'"):
        read_checkpoint(saved, ["weights"])


def test_the_copy_is_taken_before_save_returns(tmp_path):
    live = np.zeros(1000)
    state = {"best": [1.0], "seen": np.zeros(3)}
    with CheckpointStore(tmp_path) as store:
        saved = store.save(1, CheckpointItems(clock=clock(1), variables={"x": live}, hooks={"H": state}))
        live[:] = 7
        state["best"].append(2.0)
        state["seen"][:] = 7
        items = read_checkpoint(saved.path)
    assert not items.variables["x"].any()
    assert items.hooks["H"]["best"] == [1.0]
    assert not items.hooks["H"]["seen"].any()


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_large_arrays_are_copied_in_parts(tmp_path, monkeypatch, dtype):
    monkeypatch.setattr(host_copy_module, "_PART", 1000)
    arrays = {rows: np.arange(rows * 3).reshape(rows, 3).astype(dtype) for rows in (100, 777, 778)}
    live = {str(rows): array.copy() for rows, array in arrays.items()} | {"t": arrays[777].copy().T}
    with CheckpointStore(tmp_path) as store:
        for step in (1, 2):  # into new memory, and into the memory of the previous copy
            saved = store.save(step, CheckpointItems(clock=clock(step), variables=live))
            found = read_checkpoint(saved.path).variables
            for rows, array in arrays.items():
                np.testing.assert_array_equal(found[str(rows)], array)
                live[str(rows)] += 1
                array += 1
            np.testing.assert_array_equal(found["t"], live["t"])


@pytest.mark.parametrize(
    ("platform", "memory", "of_the_host"),
    [("cpu", "device", True), ("gpu", "device", False), ("gpu", "pinned_host", True), ("tpu", "unpinned_host", True)],
)
def test_arrays_that_numpy_sees_without_a_copy_are_known(platform, memory, of_the_host):
    """This includes arrays of an accelerator in host memory, such as a large table, because a view of one prevents
    donation.
    """
    sharding = SimpleNamespace(device_set=[SimpleNamespace(platform=platform)], memory_kind=memory)
    assert is_of_the_host(sharding) is of_the_host


@pytest.mark.parametrize("saves", [1, 2])
def test_saving_leaves_donation_on(tmp_path, saves):
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = step(jnp.zeros((256, 256)))
    with CheckpointStore(tmp_path) as store:
        for number in range(saves):
            address = x.unsafe_buffer_pointer()
            saved = store.save(number, CheckpointItems(clock=clock(number), variables={"x": x}))
            expected = np.array(x)
            x = step(x)
            assert x.unsafe_buffer_pointer() == address  # a live view of x would have forced a copy
            np.testing.assert_array_equal(read_checkpoint(saved.path).variables["x"], expected)


def test_jax_arrays_of_every_kind(tmp_path):
    key = jax.random.split(jax.random.key(5), 3)
    variables = {"f32": jnp.arange(6.0).reshape(2, 3), "bf16": jnp.ones(3, jnp.bfloat16), "scalar": jnp.float32(2)}
    with CheckpointStore(tmp_path) as store:
        store.save(1, CheckpointItems(clock=jnp.asarray(clock(1)), variables=variables, model_state={"key": key}))
    items = read_checkpoint(tmp_path)
    for name, value in variables.items():
        assert isinstance(items.variables[name], np.ndarray)
        assert items.variables[name].dtype == value.dtype
        np.testing.assert_array_equal(items.variables[name], value)
    assert items.model_state["key"].dtype == key.dtype
    np.testing.assert_array_equal(jax.random.key_data(items.model_state["key"]), jax.random.key_data(key))


def test_non_contiguous_arrays_keep_their_values(tmp_path):
    array = np.arange(24.0).reshape(2, 3, 4)
    variables = {"transposed": array.T, "fortran": np.asfortranarray(array), "strided": array[:, ::2]}
    with CheckpointStore(tmp_path) as store:
        store.save(1, CheckpointItems(clock=clock(1), variables=variables))
    for name, value in read_checkpoint(tmp_path).variables.items():
        np.testing.assert_array_equal(value, variables[name])


def test_a_shape_that_changes_between_saves_does_not_meet_an_old_buffer(tmp_path):
    with CheckpointStore(tmp_path) as store:
        for step, array in enumerate([np.zeros(3), np.ones((2, 2)), np.ones((2, 2), np.float32), np.full((2, 2), 3.0)]):
            saved = store.save(step, CheckpointItems(clock=clock(step), variables={"x": array}))
            found = read_checkpoint(saved.path).variables["x"]
            assert found.dtype == array.dtype
            np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("item", ["variables", "model_state", "opt_state"])
def test_nan_is_never_saved(tmp_path, item):
    bad = {"fine": np.zeros(3), "bad": np.array([1.0, np.nan])}
    store = CheckpointStore(tmp_path)
    store.save(1, CheckpointItems(clock=clock(1), variables={"x": np.zeros(2)}))
    saved = store.save(2, CheckpointItems(**{"clock": clock(2), "variables": {"x": np.zeros(2)}, item: bad}))
    with pytest.raises(NanLossDuringTrainingError, match=rf"Checkpoint 2 is not written: NaN .* {item} 'bad' \(1 of 2"):
        saved.wait()
    assert saved.done()
    assert isinstance(saved.error, NanLossDuringTrainingError)
    store.close()  # the error was already raised once
    assert [path[-1] for path in store.all()] == ["1"]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["1"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "float8_e4m3fn"])
def test_a_last_bad_value_of_each_float_dtype_is_seen(tmp_path, dtype):
    array = np.zeros(300_001, jnp.dtype(dtype))
    array[-1] = np.nan
    with CheckpointStore(tmp_path) as store:
        saved = store.save(1, CheckpointItems(clock=clock(1), variables={"x": array}))
        with pytest.raises(NanLossDuringTrainingError, match=r"\(1 of 300001 values\)"):
            saved.wait()


def test_infinity_is_refused_in_variables_only(tmp_path):
    running_minimum = {"minimum": np.array([np.inf])}
    with CheckpointStore(tmp_path) as store:
        store.save(
            1, CheckpointItems(clock=clock(1), variables={}, model_state=running_minimum, opt_state=running_minimum)
        )
        store.wait()
        with pytest.raises(NanLossDuringTrainingError):
            store.save(2, CheckpointItems(clock=clock(2), variables=running_minimum)).wait()


def test_an_error_nobody_asked_for_comes_with_the_next_save(tmp_path):
    store = CheckpointStore(tmp_path)
    store.save(1, CheckpointItems(clock=clock(1), variables={"x": np.array(np.nan)}))
    with pytest.raises(NanLossDuringTrainingError):
        store.save(2, CheckpointItems(clock=clock(2), variables={}))
    store.save(3, CheckpointItems(clock=clock(3), variables={"x": np.array(np.nan)}))
    with pytest.raises(NanLossDuringTrainingError):
        store.close()


def test_the_error_of_the_loop_is_not_hidden_by_that_of_the_last_save(tmp_path, caplog):
    def run():
        with CheckpointStore(tmp_path) as store:
            store.save(1, CheckpointItems(clock=clock(1), variables={"x": np.array(np.nan)}))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    assert "The last checkpoint was not written either: Checkpoint 1" in caplog.text


@pytest.mark.parametrize(
    ("items", "error", "words"),
    [
        ({"clock": clock(4)}, CheckpointError, "Step 1 cannot be saved: the clock of the state is at step 4"),
        ({"clock": np.zeros(4)}, CheckpointError, r"clock of a checkpoint must be uint32\[4\], not float64\[4\]"),
        ({"variables": {"names": np.array(["a"])}}, CheckpointError, "variables 'names' is ndarray of dtype <U1"),
        ({"variables": {"thing": object()}}, CheckpointError, "variables 'thing' is object of dtype object"),
        ({"input": {1, 2}}, CheckpointError, "`input` of a checkpoint must be JSON"),
        ({"timers": {"t": np.zeros(2)}}, CheckpointError, "`timers` of a checkpoint must be JSON"),
        ({"hooks": {"H": {"a": {"b": {1}}}}}, HookError, "hook 'H' holds a set at 'H/a/b'"),
        ({"hooks": {"H": {"a": {3: 1}}}}, HookError, "hook 'H' has the key 3 at 'H/a'; keys must be strings"),
        ({"hooks": {"H": {"__array__": 1}}}, HookError, "hook 'H' has the key '__array__'"),
        ({"hooks": {"H": {"a/b": np.ones(1), "a": {"b": np.ones(1)}}}}, CheckpointError, "Two arrays .* 'H/a/b'"),
    ],
)
def test_what_cannot_be_saved_is_refused_at_once(tmp_path, items, error, words):
    with CheckpointStore(tmp_path) as store:
        with pytest.raises(error, match=words):
            store.save(1, CheckpointItems(**{"clock": clock(1), "variables": {}, **items}))
        assert store.latest() is None
    assert not list(tmp_path.iterdir())


def test_a_step_that_is_saved_again_replaces_the_old_one(tmp_path, small_items, assert_same):
    with CheckpointStore(tmp_path) as store:
        store.save(1, CheckpointItems(clock=clock(1), variables={"other": np.zeros(2)}))
        store.save(1, small_items(1))
    assert_same(read_checkpoint(tmp_path), small_items(1))
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["1"]


def test_one_commit_at_a_time_and_no_thread_left(tmp_path, monkeypatch):
    running, most = [], []
    real = store_module.commit

    def counted(shelf, draft, *others):
        running.append(draft)
        most.append(len(running))
        try:
            return real(shelf, draft, *others)
        finally:
            running.pop()

    monkeypatch.setattr(store_module, "commit", counted)
    before = threading.active_count()
    with CheckpointStore(tmp_path) as store:
        for step in range(4):
            saved = store.save(step, CheckpointItems(clock=clock(step), variables={"x": np.zeros(10)}))
            assert saved.step == step
    assert most == [1, 1, 1, 1]
    assert saved.done()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("checkpoint-")]
    assert threading.active_count() <= before + 1  # orbax may keep its event loop running


def test_no_checkpoint_is_said_clearly(tmp_path):
    assert latest_checkpoint(tmp_path) is None
    with pytest.raises(CheckpointNotFoundError, match=r"There is no checkpoint in .*Name a checkpoint"):
        read_checkpoint(tmp_path)
    (tmp_path / "checkpoints" / "5").mkdir(parents=True)  # no manifest: no checkpoint
    assert latest_checkpoint(tmp_path) is None
    with pytest.raises(CheckpointNotFoundError):
        read_checkpoint(tmp_path / "checkpoints" / "5")


def test_reading_in_other_threads_does_not_disturb_a_save(saved, small_items, assert_same):
    stop, failures, reads = threading.Event(), [], []

    def read():
        while not stop.is_set():
            try:
                assert_same(read_checkpoint(saved / "checkpoints" / "1"), small_items(1))
                reads.append(1)
            except Exception as error:
                failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        with CheckpointStore(saved, keep_max=None) as store:
            for step in range(3, 15):
                store.save(step, small_items(step))
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert failures == []
    assert len(reads) > 2
    assert_same(read_checkpoint(saved), small_items(14))


def test_a_start_without_checkpoints_imports_no_orbax(tmp_path):
    program = (
        "import sys; from estimator_core._checkpoint import CheckpointStore\n"
        "from estimator_core._checkpoint.lock import ModelDirLock\n"
        "from estimator_core._checkpoint.newest import read_latest\n"
        "with ModelDirLock(sys.argv[1]), CheckpointStore(sys.argv[1]) as store:\n"
        "    assert store.latest() is None and read_latest(sys.argv[1]) is None\n"
        "assert not {'jax', 'orbax'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
