"""Fails unless exactly the named packages are installed, outside the checkout, whole, and their plugins are found.

The isolated nox sessions run it first. A test of a package alone proves nothing if the package is imported from the
checkout, or if another plugin is installed too. Packages that only serve tests are named separately, as tools.
"""

import argparse
import importlib
import sysconfig
from importlib import metadata
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="+", help="import names")
    parser.add_argument("--tools", nargs="*", default=[], help="import names of packages that tests use")
    parser.add_argument("--jax", default="", help="the version of jax that must be there, or how it begins")
    arguments = parser.parse_args()
    for package in [*arguments.packages, *arguments.tools]:
        where = Path(str(importlib.import_module(package).__file__))
        assert where.is_relative_to(sysconfig.get_path("purelib")), f"{package} is imported from {where}"
        files = [path for path in metadata.files(package) or () if path.suffix != ".pyc" and ".." not in path.parts]
        rooms = {path.parts[0] for path in files if not path.parts[0].endswith(".dist-info")}
        assert rooms == {package}, f"{package} installs {sorted(rooms)}"
        names = {path.name for path in files}
        assert {"py.typed", "LICENSE"} <= names, f"{package} lacks py.typed or LICENSE"
    expected = {name.removeprefix("estimator_") for name in [*arguments.packages, *arguments.tools]} - {"core"}
    found = {point.name for point in metadata.entry_points(group="estimator.plugins")}
    assert found == expected, f"plugins found: {sorted(found)}, expected: {sorted(expected)}"
    versions = {name: metadata.version(name) for name in ("jax", "numpy", "optax", "orbax-checkpoint", "pluggy")}
    assert f"{versions['jax']}.".startswith(arguments.jax), f"jax {versions['jax']}, expected: {arguments.jax}"
    tools = ["| as tools", *arguments.tools] if arguments.tools else []
    libraries = [f"{name} {version}" for name, version in versions.items()]
    print("installed:", *arguments.packages, *tools, "| with", *libraries)


if __name__ == "__main__":
    main()
