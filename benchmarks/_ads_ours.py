"""The framework in a separate process, for `file_to_model.py --new-processes`.

python _ads_ours.py csv|tfrecord train=FILE held_out=FILE rows=N result=FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax  # noqa: F401 - the peers import their libraries before the time begins, too
import pyarrow.csv  # noqa: F401
from file_to_model import ours


def main() -> None:
    """Runs one pass."""
    given = dict(item.split("=", 1) for item in sys.argv[2:])
    ours(sys.argv[1], Path(given["train"]).parent, int(given["rows"]), Path(given["result"]))()


if __name__ == "__main__":
    main()
