"""Transfers of large objects to and from S3 and GCS, compared with the stores' own clients copying the same bytes.

    uv run --group emulators python benchmarks/object_stores.py [--megabytes N] [--rounds N] [--json FILE]

The stores are the emulators of plugins/storage/tests: moto, and Google's testbench if STORAGE_TESTBENCH and
STORAGE_TESTBENCH_PYTHON name it. Both sides write and read 8 MB parts, eight at a time, if the client supports it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from _report import Table, report, write
from _side_by_side import compare

sys.path.insert(0, str(Path(__file__).parents[1]))
from estimator_core.storage import Storage, open_storage
from plugins.storage.tests import emulators

PART, AT_ONCE = 8 << 20, 8
BUCKET = "benchmarks"
WAYS = ("put_stream", "get_ranges")
Ways = dict[str, Callable[[], None]]


def chunks(data: bytes) -> Iterator[memoryview]:
    """Yields chunks as a checkpoint passes them: arrays of different sizes, here a third of a part."""
    view = memoryview(data)
    for at in range(0, len(data), PART // 3):
        yield view[at : at + PART // 3]


def ours(storage: Storage, data: bytes) -> Ways:
    def read() -> None:
        (found,) = storage.get_ranges("ours", [(0, len(data))])
        assert len(found) == len(data)

    return {"put_stream": lambda: storage.put_stream("ours", chunks(data), size=len(data)), "get_ranges": read}


def of_boto3(data: bytes) -> Ways:
    from boto3.s3.transfer import TransferConfig

    client = emulators.s3_client()
    config = TransferConfig(multipart_threshold=PART, multipart_chunksize=PART, max_concurrency=AT_ONCE)

    def put() -> None:
        client.upload_fileobj(io.BytesIO(data), BUCKET, "theirs", Config=config)

    def get() -> None:
        target = io.BytesIO()
        client.download_fileobj(BUCKET, "theirs", target, Config=config)
        assert target.getbuffer().nbytes == len(data)

    return {"put_stream": put, "get_ranges": get}


def of_google(data: bytes) -> Ways:
    from google.cloud import storage

    blob = storage.Client(project="none").bucket(BUCKET).blob("theirs", chunk_size=4 * PART)

    def get() -> None:
        spans = [(at, min(at + PART, len(data)) - 1) for at in range(0, len(data), PART)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            parts = pool.map(lambda span: blob.download_as_bytes(start=span[0], end=span[1], checksum=None), spans)
            assert len(b"".join(parts)) == len(data)

    return {"put_stream": lambda: blob.upload_from_file(io.BytesIO(data), size=len(data)), "get_ranges": get}


def side_by_side(title: str, mine: Ways, peers: Ways, peer: str, rounds: int, size: int) -> Table:
    contestants = {f"{way}, ours": mine[way] for way in WAYS} | {f"{way}, {peer}": peers[way] for way in WAYS}
    pairs = [(f"{way}, ours", f"{way}, {peer}") for way in WAYS]
    for way in WAYS:  # the objects to read must exist
        mine[way]()
        peers[way]()
    results = compare(contestants, rounds=rounds, pairs=pairs)
    rates = [f"{one.name}: {size / 1e6 / one.median:.0f} MB/s" for one in results]
    return report(title, results, steps=1, targets=dict.fromkeys(pairs, 0.8), unit=("ms", 1e3), notes=rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    data = os.urandom(arguments.megabytes << 20)
    tables: list[Table] = []
    with contextlib.ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        s3 = stack.enter_context(emulators.s3_server(folders[0]))
        os.environ |= {**emulators.S3_KEYS, "AWS_ENDPOINT_URL": "http://{}:{}".format(*s3)}
        emulators.s3_client().create_bucket(Bucket=BUCKET)
        title = f"{arguments.megabytes} MiB to and from S3 (moto)"
        storage = open_storage(f"s3://{BUCKET}/run")
        tables.append(side_by_side(title, ours(storage, data), of_boto3(data), "boto3", arguments.rounds, len(data)))
        if os.environ.get("STORAGE_TESTBENCH_PYTHON"):
            gcs = stack.enter_context(emulators.gcs_server(folders[1]))
            os.environ["STORAGE_EMULATOR_HOST"] = "http://{}:{}".format(*gcs)
            emulators.gcs_bucket(gcs, BUCKET)
            title = f"{arguments.megabytes} MiB to and from GCS (storage-testbench)"
            storage, peers = open_storage(f"gs://{BUCKET}/run"), of_google(data)
            tables.append(side_by_side(title, ours(storage, data), peers, "google", arguments.rounds, len(data)))
    write(arguments.json, *tables)


if __name__ == "__main__":
    main()
