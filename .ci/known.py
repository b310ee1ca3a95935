"""Writes the declarations of this repository's packages into the core's `known.json`; `--check` fails if it differs.

The core reads the file for one purpose: errors name the package of a component, a command or a kind that is not
installed.
"""

import argparse
import importlib
import json
import sys
import tomllib
from pathlib import Path

from estimator_core._plugins.not_found import COMMANDS, KINDS

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "estimator_core" / "_plugins" / "known.json"


def declared() -> dict[str, dict[str, str]]:
    """Returns distributions by kind and name of the component. Commands and kinds have keys that no kind has."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(ROOT.glob("plugins/*/pyproject.toml")):
        distribution = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["name"]
        plugin = importlib.import_module(f"estimator_{path.parent.name}.plugin")
        for component in getattr(plugin, "estimator_components", tuple)():
            found.setdefault(component.kind, {})[component.name] = distribution
        for command in getattr(plugin, "estimator_commands", tuple)():
            found.setdefault(COMMANDS, {})[command.name] = distribution
        for kind in getattr(plugin, "estimator_kinds", tuple)():
            found.setdefault(KINDS, {})[kind.name] = distribution
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file is not up to date")
    text = json.dumps(declared(), indent=1, sort_keys=True) + "\n"
    if not parser.parse_args().check:
        TABLE.write_text(text, encoding="utf-8")
        return 0
    if TABLE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TABLE.name} is not what the packages declare: run nox -s known", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
