"""Reads exports with the recipe in docs/export.md: `python check_stablehlo.py DIRECTORY DOCUMENT`."""

import re
import sys
from pathlib import Path

import compare
import jax

if __name__ == "__main__":
    blocks = re.findall(r"```python\n(.*?)```", Path(sys.argv[2]).read_text(), re.DOTALL)
    names = {}
    exec("\n".join(block for block in blocks if "def load(" in block), names)
    compare.check(sys.argv[1], names["load"])
    print(f"jax {jax.__version__}")
