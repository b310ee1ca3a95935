"""Numbers that are out of range for a program are refused before it runs. Integers never wrap."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pyarrow as pa
import pytest
from pyarrow import parquet

import estimator_core as ec
from estimator_core._cli.main import main
from estimator_core.errors import ArgumentError
from estimator_exporters.bundle.loaded import Signature, computed_of
from estimator_exporters.scoring.run import Job, score_files
from estimator_exporters.serving.repository import sources_of
from plugins.exporters.tests.live_server import running

WIDE = 2**40 + 7  # 7, if it wraps at 32 bits
BEYOND = r"'id' holds 1099511627783, outside the range of int32 \(-2147483648 to 2147483647\)"


def model_fn(features, labels, mode):
    ids, x = features["id"], features["x"]
    y = ids.reshape(ids.shape[0], -1).sum(axis=1) + x * ec.get_variable("w", (), jax.nn.initializers.ones)
    if mode == ec.ModeKeys.PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": y, "id": ids})
    return ec.EstimatorSpec(mode, loss=jnp.mean(y**2), train_op=optax.sgd(0.0))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """`written(dtype, *shape)` writes an export that takes `id` of this dtype, with this shape in each row."""
    folder = tmp_path_factory.mktemp("ranges")
    config = ec.RunConfig(model_dir=str(folder / "model"), tf_random_seed=1)
    batch = {"id": np.zeros(2, np.int32), "x": np.zeros(2, np.float32)}
    estimator = ec.Estimator(model_fn, config=config).train(lambda: [batch], steps=1)
    known = {}

    def export(dtype, *shape):
        if (dtype, shape) not in known:
            features = {"id": ec.export.Feature((None, *shape), dtype), "x": ec.export.Feature((None,))}
            receiver = ec.export.build_raw_serving_input_receiver_fn(features)
            known[dtype, shape] = estimator.export_saved_model(str(folder / f"export{len(known)}"), receiver)
        return known[dtype, shape]

    return export


def batch_of(*ids, dtype=np.int64):
    return {"id": np.array(ids, dtype), "x": np.zeros(len(ids), np.float32)}


@pytest.mark.parametrize("kind", ["signatures", "raw_signatures"])
def test_a_loaded_signature_refuses_what_its_program_would_wrap(written, kind):
    signature = getattr(ec.export.load(written("int64")), kind)["serving_default"]
    assert signature(**batch_of(-(2**31), 2**31 - 1))["id"].tolist() == [-(2**31), 2**31 - 1]
    with pytest.raises(ArgumentError, match=f"{BEYOND}, in which the program computes"):
        signature(**batch_of(1, WIDE))
    with pytest.raises(ArgumentError, match="'id' holds 9223372036854775813, outside the range of int32"):
        signature(**batch_of(2**63 + 5, dtype=np.uint64))


def test_an_unsigned_feature_has_the_range_of_its_program(written):
    signature = ec.export.load(written("uint64")).signatures["serving_default"]
    assert signature(**batch_of(2**32 - 1))["id"].tolist() == [2**32 - 1]
    for refused in (2**32, -1):
        with pytest.raises(ArgumentError, match=rf"'id' holds {refused}, outside the range of uint32 \(0 to"):
            signature(**batch_of(refused))


def test_what_host_transforms_make_is_in_range_too(written):
    loaded = ec.export.load(written("int64"))
    raw = ec.export.RawSignature(
        signature=loaded.signatures["serving_default"],
        inputs={"key": ec.export.Feature((None,), "int64"), "x": ec.export.Feature((None,))},
        before=(ec.export.Rename({"key": "id"}),),
    )
    with pytest.raises(ArgumentError, match=BEYOND):
        raw(key=np.array([WIDE]), x=np.zeros(1, np.float32))


def test_a_signature_computes_as_wide_as_its_writer_where_the_reader_is_wider(written):
    with jax.enable_x64(True):
        signature = ec.export.load(written("int64")).signatures["serving_default"]
        assert signature(**batch_of(5))["y"].tolist() == [5.0]
        with pytest.raises(ArgumentError, match=BEYOND):
            signature(**batch_of(WIDE))


def test_a_manifest_tells_what_its_writer_computed_in(written):
    described = ec.export.load(written("int64")).manifest["signatures"]["serving_default"]
    assert described["computed"] == {"id": "int32"}
    older = {name: value for name, value in described.items() if name != "computed"}
    assert computed_of(described) == {"id": "int32"}
    assert computed_of(older) == {}  # its writer may have computed in int64


@pytest.mark.plugins
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "npz", "tfrecord"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_files_with_ids_out_of_range_are_not_scored(written, tmp_path, capsys, dtype, kind):
    path = tmp_path / f"rows.{kind}"
    if kind == "csv":
        path.write_text(f"id,x\n1,0\n{WIDE},0\n")
    elif kind == "jsonl":
        path.write_text(f'{{"id": 1, "x": 0.0}}\n{{"id": {WIDE}, "x": 0.0}}\n')
    elif kind == "parquet":
        parquet.write_table(pa.table({"id": [1, WIDE], "x": pa.array([0, 0], pa.float32())}), path)
    elif kind == "npz":
        np.savez(path, **batch_of(1, WIDE))
    else:
        import estimator_inputs

        estimator_inputs.write_tfrecord(path, [record(1), record(WIDE)])
    output = tmp_path / "scores.csv"
    assert main(["predict", written(dtype), "--input", str(path), "--output", str(output)]) != 0
    told = capsys.readouterr().err
    assert str(path) in told
    assert "'id'" in told
    assert str(WIDE) in told
    assert not output.exists()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "npz"])
def test_arrays_with_numbers_that_would_be_infinite_are_not_scored(written, tmp_path, kind):
    path = tmp_path / f"rows.{kind}"
    if kind == "npz":
        np.savez(path, id=np.array([[1, 2]], np.int32), x=np.array([1e39]))
    else:
        path.write_text('id,x\n"[1, 2]",1e39\n' if kind == "csv" else '{"id": [1, 2], "x": 1e39}\n')
    with pytest.raises(ArgumentError, match=r"'x' holds 1e\+39, which is infinite as float32") as told:
        score_files(Job(export=written("int32", 2), inputs=(str(path),), output=tmp_path / "out.jsonl"))
    assert str(path) in str(told.value)
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("kind", ["signatures", "raw_signatures"])
def test_a_loaded_signature_refuses_numbers_that_would_be_infinite(written, kind):
    signature = getattr(ec.export.load(written("int32")), kind)["serving_default"]
    largest = float(np.finfo(np.float32).max)
    found = signature(id=np.array([0, 0], np.int32), x=np.array([np.inf, largest]))
    assert found["y"].tolist() == [np.inf, largest]
    with pytest.raises(ArgumentError, match=r"'x' holds -1e\+39, which is infinite as float32"):
        signature(id=np.array([0], np.int32), x=np.array([-1e39]))


def record(number):
    example = ec.export.example_class()()
    example.features.feature["id"].int64_list.value.append(number)
    example.features.feature["x"].float_list.value.append(0.0)
    return example.SerializeToString()


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
@pytest.mark.parametrize(
    ("dtype", "ids", "message"),
    [
        ("int32", [WIDE, 0], BEYOND),
        ("uint8", [-1, 0], r"'id' holds -1, outside the range of uint8 \(0 to 255\)"),
        ("uint8", [300, 0], "'id' holds 300, outside the range of uint8"),
        ("int32", [1.5, 0], r"'id' cannot be read as int32: \[1.5, 0\]"),
        ("int32", [2**70, 0], r"'id' cannot be read as int32: \[1180591620717411303424, 0\]"),
        ("int64", [WIDE, 0], BEYOND),
    ],
)
def test_rows_of_lists_out_of_range_are_named(written, tmp_path, kind, dtype, ids, message):
    path = listed(tmp_path / f"rows.{kind}", [[1, 2], ids])
    place = "row 1" if dtype == "int64" else f"line {2 if kind == 'jsonl' else 3}"
    with pytest.raises(ArgumentError, match=rf"rows.{kind}, {place}: .*{message}"):
        score_files(Job(export=written(dtype, 2), inputs=(str(path),), output=tmp_path / "out.jsonl"))


def test_rows_of_lists_within_a_narrow_range_are_scored(written, tmp_path):
    path = listed(tmp_path / "rows.jsonl", [[0, 255]])
    score_files(Job(export=written("uint8", 2), inputs=(str(path),), output=tmp_path / "out.jsonl"))
    assert json.loads((tmp_path / "out.jsonl").read_text())["id"] == [0, 255]


def listed(path, rows):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"id": ids, "x": 0.0}) + "\n" for ids in rows))
    else:
        path.write_text("id,x\n" + "".join(f'"{json.dumps(ids)}",0\n' for ids in rows))
    return path


def test_a_server_refuses_what_its_program_would_wrap(written):
    with running(sources=sources_of([f"m={written('int64')}"])) as server:
        for ids, status in (([1, 2], 200), ([1, WIDE], 400)):
            inputs = [
                {"name": "id", "datatype": "INT64", "shape": [2], "data": ids},
                {"name": "x", "datatype": "FP32", "shape": [2], "data": [0, 0]},
            ]
            rows = [{"id": number, "x": 0.0} for number in ids]
            for path, body in (
                ("/v2/models/m/infer", {"inputs": inputs}),
                ("/v1/models/m:predict", {"instances": rows}),
                ("/v1/models/m:predict", {"inputs": {"id": ids, "x": [0.0, 0.0]}}),
            ):
                found, _, content = server.request("POST", path, body)
                assert found == status, content
                assert status == 200 or "'id' holds 1099511627783, outside the range of int32" in content["error"]


@pytest.mark.parametrize("kind", ["signatures", "raw_signatures"])
def test_arrays_of_the_other_byte_order_are_taken_by_value(written, kind):
    signature = getattr(ec.export.load(written("int32")), kind)["serving_default"]
    swapped = {"id": np.array([1, 258], ">i4"), "x": np.array([0.5, 1.5], ">f4")}
    found = signature(**swapped)
    assert found["id"].tolist() == [1, 258]
    assert found["y"].tolist() == [1.5, 259.5]
    with pytest.raises(ArgumentError, match=BEYOND):
        signature(**{**swapped, "id": np.array([1, WIDE], ">i8")})


@pytest.mark.parametrize("kind", ["signatures", "raw_signatures"])
def test_what_is_no_batch_is_refused_with_the_reason(written, kind):
    signature = getattr(ec.export.load(written("int32", 2)), kind)["serving_default"]
    with pytest.raises(ArgumentError, match=r"input 'id' is not an array: .* Lists must be nested evenly"):
        signature(id=[[1, 2], [3]], x=[0.0, 0.0])
    with pytest.raises(ArgumentError, match=r"given \(0, 2\)\. A batch has at least one row\.$"):
        signature(id=np.zeros((0, 2), np.int32), x=np.zeros(0, np.float32))


def test_a_signature_of_any_format_refuses_before_its_program_runs():
    """Formats that pass 64-bit values to their program state the type that it computes in."""
    feature, taken = {"id": ec.export.Feature((None,), "int64")}, []
    signature = Signature(
        name="s",
        method="predict",
        inputs=feature,
        outputs=feature,
        run=lambda arrays: taken.append(arrays) or arrays,
        computed={"id": "int32"},
    )
    assert signature(id=[1])["id"].dtype == np.int64
    with pytest.raises(ArgumentError, match=BEYOND):
        signature(id=[WIDE])
    assert len(taken) == 1


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_bad_rows_of_lists_are_left_out_where_this_is_asked_for(written, tmp_path, caplog, kind):
    path = listed(tmp_path / f"rows.{kind}", [[1, 2], [WIDE, 0], [3, 4], [1.5, 0]])
    if kind == "jsonl":
        path.write_text(path.read_text() + "no JSON\n")
    job = Job(export=written("int32", 2), inputs=(str(path),), output=tmp_path / "out.jsonl", on_error="skip")
    assert score_files(job).rows == 2
    assert [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [[1, 2], [3, 4]]
    skipped = 3 if kind == "jsonl" else 2
    assert f"Skipped {skipped} rows of {path} that cannot be read." in caplog.text
    assert f"line {2 if kind == 'jsonl' else 3}: column 'id' holds {WIDE}" in caplog.text


@pytest.mark.plugins
def test_lists_of_unsigned_numbers_in_parquet_are_scored(written, tmp_path):
    ids = pa.array([[0, 255], [3, 4]], pa.list_(pa.uint8()))
    parquet.write_table(pa.table({"id": ids, "x": pa.array([0, 0], pa.float32())}), tmp_path / "rows.parquet")
    job = Job(
        export=written("uint8", 2), inputs=(str(tmp_path / "rows.parquet"),), output=tmp_path / "out.jsonl", keep=()
    )
    assert score_files(job).rows == 2
    found = [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert found == [[0, 255], [3, 4]]
