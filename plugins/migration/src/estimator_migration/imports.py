"""Import statements: those that new names need, and those of TensorFlow that change."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import libcst as cst

from estimator_migration.rows import SHORT_MODULES, Row


def import_line(home: str) -> str:
    """Returns the statement that imports a home under the name in `Row.place`.

    Example:
        >>> import_line("estimator_core.inputs:numpy_input_fn"), import_line("optax:adam")
        ('import estimator_core as ec', 'import optax')
    """
    module = home.partition(":")[0]
    short = SHORT_MODULES.get(module, module).partition(".")[0]
    if short == "ec":
        return "import estimator_core as ec"
    return f"import {module} as {SHORT_MODULES[module]}" if module in SHORT_MODULES else f"import {module}"


def changed_import(
    statement: cst.Import | cst.ImportFrom, homes: Mapping[cst.CSTNode, Row], dropped: Collection[cst.CSTNode]
) -> list[cst.BaseSmallStatement] | None:
    """Returns the statements that replace an import, or None if it stays as it is.

    Args:
        statement: an import statement of the program.
        homes: the rows of the imported names that have a counterpart.
        dropped: the imported names that are no longer needed.
    """
    if isinstance(statement.names, cst.ImportStar):
        return None
    aliases = list(statement.names)
    if not any(alias in homes or alias in dropped for alias in aliases):
        return None
    kept = [alias for alias in aliases if alias not in homes and alias not in dropped]
    found: list[cst.BaseSmallStatement] = []
    if kept:
        kept[-1] = kept[-1].with_changes(comma=aliases[-1].comma)
        found.append(statement.with_changes(names=kept))
    moved: dict[str, list[cst.ImportAlias]] = {}
    for alias in aliases:
        row = homes.get(alias)
        if row is not None:
            module, _, name = row.home.partition(":")
            bound = alias.evaluated_alias or alias.evaluated_name
            asname = None if bound == name else cst.AsName(name=cst.Name(bound))
            moved.setdefault(module, []).append(cst.ImportAlias(name=cst.Name(name), asname=asname))
    for module, names in moved.items():
        expression = cst.parse_expression(module)
        assert isinstance(expression, cst.Name | cst.Attribute)
        found.append(cst.ImportFrom(module=expression, names=names))
    return found
