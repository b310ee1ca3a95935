"""Validates bills of materials: `bills.py FILE...`, each a CycloneDX document of a package of this repository."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_NAME = re.compile(r"[\w.-]+")


def packages() -> dict[str, list[str]]:
    """Returns the distributions of this repository with the names of their requirements, without extras and markers."""
    found: dict[str, list[str]] = {}
    for path in [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]:
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        lines = [line for line in project.get("dependencies", []) if ";" not in line]
        found[project["name"]] = [normalised(match.group()) for line in lines if (match := _NAME.match(line))]
    return found


def normalised(name: str) -> str:
    """Returns a distribution's name as an index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def faults(bill: Mapping[str, Any], required: list[str]) -> list[str]:
    """Returns requirements without a component, and components without a version."""
    components = {normalised(one["name"]): one.get("version") for one in bill.get("components", [])}
    wrong = [f"{name} is required and not listed" for name in required if name not in components]
    return wrong + [f"{name} has no version" for name, version in components.items() if not version]


def address_check(of_iris: Callable[[object], bool], of_uris: Callable[[str], object]) -> Callable[[object], bool]:
    """Returns a check of addresses that uses the grammar of IRIs only if a text is not ASCII.

    An IRI in ASCII is a URI. The check of IRIs in jsonschema parses with a general grammar, which takes 0.3 s per
    address, or half an hour for the thousands of files in the bills. The check of URIs is a regular expression.

    Args:
        of_iris: the check of jsonschema for the format "iri-reference".
        of_uris: the function that returns whether a text is a URI reference.
    """
    return lambda value: bool(of_uris(value)) if isinstance(value, str) and value.isascii() else of_iris(value)


def main() -> int:
    """Prints the faults of the files. Returns 1 if there are any."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    from jsonschema.validators import Draft7Validator
    from rfc3986_validator import validate_rfc3986

    formats = Draft7Validator.FORMAT_CHECKER
    slow, _ = formats.checkers["iri-reference"]
    quick = address_check(slow, lambda text: validate_rfc3986(text, rule="URI_reference"))
    formats.checks("iri-reference", raises=ValueError)(quick)
    validator, required, wrong = JsonStrictValidator(SchemaVersion.V1_5), packages(), list[str]()
    for path in map(Path, sys.argv[1:]):
        text = path.read_text(encoding="utf-8")
        bill = json.loads(text)
        invalid = validator.validate_str(text)
        wrong += [f"{path.name}: {str(invalid).splitlines()[0]}"] if invalid else []
        wrong += [f"{path.name}: {one}" for one in faults(bill, required[bill["metadata"]["component"]["name"]])]
    print(*wrong, f"{len(sys.argv) - 1} bills, {len(wrong)} faults", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
