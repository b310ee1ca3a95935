"""Checks for packages that only some formats and scorers need."""

from __future__ import annotations

import importlib.util

from estimator_core.errors import ExportError


def require(extra: str, *modules: str) -> None:
    """Refuses a format whose packages are not installed. The message names the extra in the normalized form of pip.

    Raises:
        ExportError: a package is not installed, or a file has its name. The message names the package or the file.
    """
    specs = {name: importlib.util.find_spec(name) for name in modules}
    missing = [name for name, spec in specs.items() if spec is None]
    for name, spec in specs.items():
        if spec is not None and spec.submodule_search_locations is None:  # the package is a folder
            # An import would run the file as a program, which might export again without end.
            raise ExportError(
                f"The export format {extra!r} needs the package {name}, but Python finds {spec.origin} in its place. "
                "Rename that file."
            )
    if missing:
        raise ExportError(
            f"The export format {extra!r} needs {', '.join(missing)}, which is not installed. "
            f"Install it: pip install 'estimator-exporters[{extra.replace('_', '-')}]'"
        )


def lacking(name: str, extra: str, error: ImportError) -> ModuleNotFoundError:
    """Returns the error for a name whose library cannot be imported. The message says what to install.

    Args:
        name: the requested name.
        extra: the extra that installs the library.
        error: the error of the import.
    """
    return ModuleNotFoundError(
        f"{name} needs {error.name or extra}, which is not installed. "
        f"Install it: pip install 'estimator-exporters[predict,{extra}]'",
        name=error.name,
    )
