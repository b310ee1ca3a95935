"""The answers of `estimator_core` to names of TensorFlow, from the rows of the table.

`python -m plugins.migration.tests.homes` adds the answers that `estimator_core/_homes.json` lacks. It does not change
existing answers.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import estimator_core as ec
from estimator_migration import Row, Verdict, table

HOMES = Path(ec.__file__).with_name("_homes.json")
#: Maps modules of TensorFlow to the module of the core under which users type their names. The first match wins.
FACES: dict[str, str] = {
    "tf.estimator.export": "export",
    "tf.estimator.inputs": "inputs",
    "tf.metrics": "metrics",
    "tf.contrib.metrics": "metrics",
    "tf.summary": "summary",
    "tf.estimator": "",
    "tf.estimator.experimental": "",
    "tf.contrib.estimator": "",
    "tf.contrib.learn": "",
    "tf.contrib.tpu": "",
    "tf.train": "",
    "tf.feature_column": "",
    "tf.layers": "",
}


def typed() -> Iterator[tuple[str, Row]]:
    """Yields every name as users type it after `ec.`, with its row."""
    for module, face in FACES.items():
        for row in table().values():
            owner, _, name = row.name.rpartition(".")
            if owner == module and name.isidentifier():
                yield f"{face}.{name}".removeprefix("."), row


def found_on_ec(name: str) -> bool:
    """Returns whether the name exists."""
    face, _, last = name.rpartition(".")
    return hasattr(getattr(ec, face) if face else ec, last)


def answer(row: Row) -> str:
    """Returns the end of the message "module 'estimator_core' has no attribute 'NAME': it is ..."."""
    how = row.how.rstrip(".")
    if row.verdict is Verdict.GONE:
        return f"without a successor: {how}"
    module, _, name = row.home.partition(":")
    home = f"{module}.{name}".rstrip(".").replace("estimator_core", "ec", 1)
    package = module.partition(".")[0]
    house = package.startswith("estimator_") and package != "estimator_core"
    comes = f" (pip install {package.replace('_', '-')})" if house else ""
    return f"written another way: {how}{comes}" if row.verdict is Verdict.REWRITE else f"{home}{comes}"


def lacking() -> dict[str, str]:
    """Returns the answers that the core does not have yet."""
    known = json.loads(HOMES.read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for name, row in typed():
        if name not in known and not found_on_ec(name):
            found.setdefault(name, answer(row))
    for face in ("export", "inputs", "metrics", "summary"):  # users may type the name without its module
        of_face: ModuleType = getattr(ec, face)
        for last in [name.rpartition(".")[2] for name, _ in typed() if name.startswith(f"{face}.")]:
            if last not in known and not hasattr(ec, last):
                there = f"ec.{face}.{last}" if hasattr(of_face, last) else (known | found)[f"{face}.{last}"]
                found.setdefault(last, there)
    return found


if __name__ == "__main__":
    homes = json.loads(HOMES.read_text(encoding="utf-8")) | lacking()
    HOMES.write_text(json.dumps(dict(sorted(homes.items())), indent=1) + "\n", encoding="utf-8")
