"""Statistics of the columns of one Parquet file: estimator-inputs in one pass, pyarrow and pandas on the whole table.

    uv run python benchmarks/data_statistics.py [--rows 20000000] [--rounds 1] [--json FILE]

Each measurement is a separate process, so its peak resident size is its own. All report rows, missing values, limits,
mean, deviation, quartiles and numbers of distinct values for four real columns, two integer columns and two columns of
words. Exact values must be equal; sketched values must be within their stated error.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _report import report, write
from _side_by_side import compared

WAYS = ("estimator-inputs", "pyarrow", "pandas")
REAL = [f"f{k}" for k in range(4)]
WHOLE = ["few", "key"]
WORDS = ["city", "ticket"]
GROUP = 1 << 20
QUARTILES = (0.25, 0.5, 0.75)


def write_file(path: Path, rows: int) -> None:
    """Writes the rows, one row group at a time. A tenth of the real numbers is missing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None
    for first in range(0, rows, GROUP):
        n = min(GROUP, rows - first)
        generator = np.random.default_rng(first)
        columns: dict[str, Any] = {
            name: pa.array(generator.normal(k, 1 + k, n), mask=generator.random(n) < 0.1) for k, name in enumerate(REAL)
        }
        columns["few"] = pa.array(generator.integers(0, 50, n))
        columns["key"] = pa.array(np.arange(first, first + n))
        columns["city"] = pa.array([f"city {k}" for k in range(300)]).take(pa.array(generator.integers(0, 300, n)))
        columns["ticket"] = pa.array([f"t{k}" for k in generator.integers(0, 10_000_000, n)])
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def ours(path: Path) -> dict[str, Any]:
    from estimator_inputs.statistics.gather import gather

    found: dict[str, Any] = {}
    for name, one in gather(path).columns.items():
        found[name] = {"missing": one.missing, "different": one.different, "error": one.error}
        if one.numbers is not None:
            numbers = {"minimum": one.minimum, "maximum": one.maximum, "mean": one.mean, "deviation": one.deviation}
            found[name] |= {**numbers, "quartiles": one.numbers.quantiles(QUARTILES), "rank_error": one.rank_error}
    return found


def of_pyarrow(path: Path) -> dict[str, Any]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    found: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name)
        found[name] = {"missing": column.null_count, "different": pc.count_distinct(column).as_py()}
        if name not in WORDS:
            limits = pc.min_max(column).as_py()
            moments = {"mean": pc.mean(column).as_py(), "deviation": pc.stddev(column).as_py()}
            quartiles = pc.quantile(column, list(QUARTILES)).to_pylist()
            found[name] |= {"minimum": limits["min"], "maximum": limits["max"], **moments, "quartiles": quartiles}
    return found


def of_pandas(path: Path) -> dict[str, Any]:
    import pandas as pd

    frame = pd.read_parquet(path)
    found: dict[str, Any] = {}
    for name, column in frame.items():
        found[str(name)] = {"missing": int(column.isna().sum()), "different": int(column.nunique())}
        if name not in WORDS:
            limits = {"minimum": float(column.min()), "maximum": float(column.max())}
            moments = {"mean": float(column.mean()), "deviation": float(column.std(ddof=0))}
            found[str(name)] |= {**limits, **moments, "quartiles": column.quantile(list(QUARTILES)).tolist()}
    return found


HOW = {"estimator-inputs": ours, "pyarrow": of_pyarrow, "pandas": of_pandas}


def child(way: str, path: Path) -> None:
    """Prints the statistics, the seconds, and the peak bytes."""
    begin = time.perf_counter()
    found = HOW[way](path)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"found": found, "seconds": seconds, "peak": peak}))


def check(found: dict[str, Any], exact: dict[str, Any]) -> None:
    """Compares our statistics with those of pyarrow or pandas.

    Ranks of quantiles are compared by the deviation of the values, because it bounds the density near a quartile.
    """
    for name, other in exact.items():
        own = found[name]
        assert own["missing"] == other["missing"], name
        assert abs(own["different"] - other["different"]) <= 3 * own["error"] * other["different"], name
        if "mean" in other:
            assert (own["minimum"], own["maximum"]) == (other["minimum"], other["maximum"]), name
            for moment in ("mean", "deviation"):
                np.testing.assert_allclose(own[moment], other[moment], rtol=1e-9, err_msg=name)
            # the density of normal and of uniform numbers at a quartile is at least 0.28 / deviation
            off = own["rank_error"] * other["deviation"] / 0.28
            np.testing.assert_allclose(own["quartiles"], other["quartiles"], atol=off + 1e-9, err_msg=name)


def main() -> None:
    """Runs rounds of all methods, one after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--child", choices=WAYS)
    parser.add_argument("--path", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.path)
        return
    seconds: dict[str, list[float]] = {way: [] for way in args.ways}
    peaks: dict[str, list[float]] = {way: [] for way in args.ways}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        write_file(path, args.rows)
        print(f"{args.rows:,} rows, {path.stat().st_size:,} bytes")
        for _ in range(args.rounds):
            found: dict[str, Any] = {}
            for way in args.ways:
                command = [sys.executable, __file__, "--child", way, "--path", str(path)]
                told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
                found[way] = told["found"]
                seconds[way].append(told["seconds"])
                peaks[way].append(told["peak"])
                print(f"{way}: {args.rows / told['seconds']:,.0f} rows/s, {told['peak'] / 1e6:,.0f} MB")
            for way in args.ways[1:]:
                check(found[args.ways[0]], found[way])
                print(f"{args.ways[0]} agrees with {way}")
    pairs = [compared(seconds, args.ways[0], way) for way in args.ways[1:]]
    memory = [compared(peaks, args.ways[0], way, smaller_is_better=True) for way in args.ways[1:]]
    write(
        args.json,
        report("Statistics of a Parquet file", pairs, steps=1, rows=args.rows),
        report("Peak memory", memory, steps=1, unit=("MB", 1e-6)),
    )


if __name__ == "__main__":
    main()
