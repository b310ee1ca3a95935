"""Assignments of a program to attributes, such as `self.tf = tf`."""

from __future__ import annotations

import libcst as cst


class AttributeTargets(cst.CSTVisitor):
    """Collects the assignments to attributes.

    Attributes:
        values: the assigned expressions, by the name of the attribute as it is written.
    """

    def __init__(self) -> None:
        self.values: dict[str, list[cst.BaseExpression]] = {}

    def visit_Assign(self, node: cst.Assign) -> None:
        """Records `a.b = x` and `a.b = c.d = x`."""
        for target in node.targets:
            self._note(target.target, node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        """Records `a.b: T = x`."""
        if node.value is not None:
            self._note(node.target, node.value)

    def _note(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        name = dotted_name(target) if isinstance(target, cst.Attribute) else ""
        if name:
            self.values.setdefault(name, []).append(value)


def dotted_name(node: cst.BaseExpression) -> str:
    """Returns `self.cfg.tf` as it is written, or "" for anything other than names and dots.

    Example:
        >>> dotted_name(cst.parse_expression("self.cfg.tf")), dotted_name(cst.parse_expression("f().tf"))
        ('self.cfg.tf', '')
    """
    if isinstance(node, cst.Name):
        return node.value
    if not isinstance(node, cst.Attribute):
        return ""
    inner = dotted_name(node.value)
    return f"{inner}.{node.attr.value}" if inner else ""
