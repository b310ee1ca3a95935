"""Tests of the recipe of docs/export.md, which reads exports in a process that cannot import our packages."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from estimator_core._export.contract import ExportRequest, SignatureSpec
from estimator_core._export.directories import new_export
from estimator_core._export.receivers import Feature

pytestmark = pytest.mark.plugins

DOCUMENT = Path(__file__).parents[2] / "docs" / "export.md"
BLOCKED = ("estimator_core", "estimator_exporters", "optax", "flax", "orbax")
GUARD = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ImportError(name + " is not for the recipe")

sys.meta_path.insert(0, Blocked())
"""
CHECK = f"""
import json, sys
import numpy as np
for batch in (1, 7, 64):
    x = np.arange(batch * 3, dtype=np.float32).reshape(batch, 3)
    print(json.dumps(np.asarray(load(sys.argv[1])(x=x)["y"]).tolist()))
assert not [name for name in sys.modules if name.partition(".")[0] in {BLOCKED!r}]
"""


def recipe():
    (block,) = [b for b in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL) if "def load(" in b]
    return block


def test_it_has_at_most_fifteen_lines():
    assert len([line for line in recipe().splitlines() if line.strip()]) <= 15


def test_it_reads_an_export_without_us(tmp_path):
    from estimator_exporters.stablehlo import StableHLOFormat

    kernel = np.arange(6, dtype=np.float32).reshape(3, 2)
    signature = SignatureSpec(
        name="serving_default",
        method="predict",
        inputs={"x": Feature((None, 3))},
        outputs={"y": Feature((None, 2))},
        function=lambda variables, inputs: {"y": inputs["x"] @ variables["dense/kernel"]},
    )
    request = ExportRequest(signatures={"serving_default": signature}, variables={"dense/kernel": kernel})
    with new_export(tmp_path) as (directory, final):
        StableHLOFormat().write(request, directory)
    command = [sys.executable, "-I", "-c", GUARD + recipe() + CHECK, str(final[0])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for line, batch in zip(done.stdout.splitlines(), (1, 7, 64), strict=True):
        x = np.arange(batch * 3, dtype=np.float32).reshape(batch, 3)
        np.testing.assert_allclose(json.loads(line), x @ kernel, rtol=1e-5)
