"""Resolves expressions of a program to dotted names: through imports, assignments, `getattr` and calls."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst import matchers
from libcst.metadata import (
    Assignment,
    BuiltinAssignment,
    FunctionScope,
    GlobalScope,
    ImportAssignment,
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    Scope,
    ScopeProvider,
)

from estimator_migration.assigning import AttributeTargets, dotted_name
from estimator_migration.canonical import ROOTS
from estimator_migration.rows import Verdict, find

_DEPTH = 40
_ASSIGNMENTS = matchers.Assign() | matchers.AnnAssign() | matchers.AugAssign()
CHOSEN_AT_RUN_TIME = "<chosen at run time>"


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """The meaning of an expression.

    Args:
        name: the dotted name. `()` follows the class of an instance.
        alias: the part that a variable of the program stands for, or "" if the program uses the name itself.
    """

    name: str
    alias: str = ""


class Resolver:
    """Resolves the expressions of one program.

    Args:
        source: the text of the program.

    Raises:
        libcst.ParserSyntaxError: the source is not Python.
    """

    def __init__(self, source: str) -> None:
        self.wrapper = MetadataWrapper(cst.parse_module(source))
        self.module = self.wrapper.module
        self.positions: Mapping[Any, Any] = self.wrapper.resolve(PositionProvider)
        self.parents: Mapping[Any, Any] = self.wrapper.resolve(ParentNodeProvider)
        self._scopes: Mapping[Any, Scope | None] = self.wrapper.resolve(ScopeProvider)
        targets = AttributeTargets()
        self.module.visit(targets)
        self._attributes = targets.values
        self._meanings: dict[cst.CSTNode, Resolved | None] = {}

    def line(self, node: cst.CSTNode) -> int:
        """Returns the line of a node, from 1."""
        return self.positions[node].start.line

    def resolve(self, node: cst.BaseExpression, depth: int = 0) -> Resolved | None:
        """Returns the meaning of an expression, or None if it is not known."""
        if depth > _DEPTH:
            return None
        if isinstance(node, cst.Name):
            return self._variable(node, depth)
        if isinstance(node, cst.Attribute):
            found = self.resolve(node.value, depth + 1)
            if found is not None:
                return Resolved(name=f"{found.name}.{node.attr.value}", alias=found.alias)
            return self._attribute(node, depth)
        if isinstance(node, cst.Call):
            return self._call(node, depth)
        if isinstance(node, cst.IfExp):
            return self.resolve(node.body, depth + 1) or self.resolve(node.orelse, depth + 1)
        return None

    def base_classes(self, node: cst.ClassDef, below: tuple[cst.ClassDef, ...] = ()) -> list[str]:
        """Returns the names of all classes that a class derives from, as far as they are known.

        Args:
            node: the class.
            below: the classes that derive from it. One of them may have the name of a base.
        """
        found: list[str] = []
        for base in node.bases:
            resolved = self.resolve(base.value)
            if resolved is not None:
                found.append(resolved.name)
            elif isinstance(base.value, cst.Name):
                for each in self._assignments(base.value):
                    other = each.node if isinstance(each, Assignment) else None
                    if isinstance(other, cst.ClassDef) and other not in (node, *below):
                        found.extend(self.base_classes(other, (node, *below)))
        return found

    def means_one(self, node: cst.Name) -> bool:
        """Returns whether a name of the program is imported or assigned only once, not by a conditional expression."""
        found = self._assignments(node)
        return len(found) == 1 and not (
            isinstance(found[0], Assignment) and isinstance(self._assigned(found[0].node), cst.IfExp)
        )

    def written(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """Returns the value of a name that the program assigns once, and any other expression itself."""
        assigned = self._assignments(node) if isinstance(node, cst.Name) and self.means_one(node) else []
        value = self._assigned(assigned[0].node) if assigned and isinstance(assigned[0], Assignment) else None
        return node if value is None else value

    def has_another(self, node: cst.CSTNode, name: str, module: str) -> bool:
        """Returns whether a name may mean something other than a module-level import of `module` at an expression."""
        scope = self._scopes.get(node)
        return any(
            not isinstance(each, ImportAssignment)
            or not isinstance(each.scope, GlobalScope)
            or module not in {one.name for one in each.get_qualified_names_for(name)}
            for each in (() if scope is None else scope[name])
            if not isinstance(each, BuiltinAssignment)
        )

    def is_private(self, alias: cst.ImportAlias) -> bool:
        """Returns whether only `references` see the imported name, and no other scope, attribute or list of exports."""
        bound = alias.evaluated_alias or alias.evaluated_name.partition(".")[0]
        scope = self._scopes.get(self.parents[alias])
        return isinstance(scope, GlobalScope | FunctionScope) and bound not in self._shared

    @functools.cached_property
    def _shared(self) -> frozenset[str]:
        """The names that are declared global, are attributes, or are listed in `__all__`."""
        found: set[str] = set()
        for node in matchers.findall(self.module, matchers.NameItem() | matchers.Attribute() | _ASSIGNMENTS):
            if isinstance(node, cst.NameItem):
                found.add(node.name.value)
            elif isinstance(node, cst.Attribute):
                found.add(node.attr.value)
            elif isinstance(node, cst.Assign | cst.AnnAssign | cst.AugAssign) and node.value is not None:
                target = node.targets[0].target if isinstance(node, cst.Assign) else node.target
                if getattr(target, "value", "") == "__all__":
                    strings = matchers.findall(node.value, matchers.SimpleString())
                    found |= {str(cst.ensure_type(each, cst.SimpleString).evaluated_value) for each in strings}
        return frozenset(found)

    def imports_in_a_line(self, node: cst.Name) -> bool:
        """Returns whether an import within a longer line binds the name. Such an import stays as it is."""
        statements = (each.node for each in self._assignments(node) if isinstance(each, ImportAssignment))
        return any(not isinstance(self.parents.get(each), cst.SimpleStatementLine) for each in statements)

    def references(self, alias: cst.ImportAlias) -> list[cst.CSTNode]:
        """Returns the places where the program uses the name that an import binds."""
        statement = self.parents[alias]
        scope = self._scopes.get(statement)
        bound = alias.evaluated_alias or alias.evaluated_name.partition(".")[0]
        return [
            access.node
            for each in (() if scope is None else scope.assignments)
            if each.name.partition(".")[0] == bound and getattr(each, "node", None) is statement
            for access in each.references
        ]

    @functools.cached_property
    def names(self) -> Mapping[str, list[cst.Name]]:
        """The occurrences of each name that is not an attribute or a keyword."""
        found: dict[str, list[cst.Name]] = {}
        for each in matchers.findall(self.module, matchers.Name()):
            name, parent = cst.ensure_type(each, cst.Name), self.parents.get(each)
            if name not in (getattr(parent, "attr", None), getattr(parent, "keyword", None)):
                found.setdefault(name.value, []).append(name)
        return found

    @functools.cached_property
    def attributes(self) -> Mapping[str, list[cst.Attribute]]:
        """The attributes of any object that the program uses, by name."""
        found: dict[str, list[cst.Attribute]] = {}
        for each in matchers.findall(self.module, matchers.Attribute()):
            node = cst.ensure_type(each, cst.Attribute)
            found.setdefault(node.attr.value, []).append(node)
        return found

    @functools.cached_property
    def of_module(self) -> Mapping[str, str]:
        """The names of the module that mean a name of TensorFlow, with that name."""
        scope = self._scopes[self.module]
        assignments = () if scope is None else scope.assignments
        found = {each.name: self._bound(each, each.name, 0) for each in assignments if "." not in each.name}
        return {name: each.name for name, each in sorted(found.items()) if each is not None}

    def above(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yields a node and the nodes around it, from the inside."""
        found: cst.CSTNode | None = node
        while found is not None:
            yield found
            found = self.parents.get(found)

    def _assignments(self, node: cst.Name) -> list[Any]:
        scope = self._scopes.get(node)
        return [] if scope is None else list(scope[node.value])

    def _variable(self, node: cst.Name, depth: int) -> Resolved | None:
        found = (self._bound(each, node.value, depth) for each in self._assignments(node))
        return next((each for each in found if each is not None), None)

    def _bound(self, assignment: Any, name: str, depth: int) -> Resolved | None:
        """Returns the name of TensorFlow that an assignment or an import binds to a name."""
        found = None
        if isinstance(assignment, ImportAssignment):
            names = sorted(one.name for one in assignment.get_qualified_names_for(name))
            found = Resolved(name=names[0]) if names else None
        elif isinstance(assignment, Assignment):
            value = self._assigned(assignment.node)
            inner = None if value is None else self._meaning(value, depth)
            found = None if inner is None else Resolved(name=inner.name, alias=inner.name)
        return found if found is not None and is_ours(found.name) else None

    def _attribute(self, node: cst.Attribute, depth: int) -> Resolved | None:
        """Returns the value that the program assigns to an attribute of that object: `self.tf = tf`."""
        for value in self._attributes.get(dotted_name(node), ()):
            inner = self._meaning(value, depth)
            if inner is not None and is_ours(inner.name):
                return Resolved(name=inner.name, alias=inner.name)
        return None

    def _meaning(self, value: cst.BaseExpression, depth: int) -> Resolved | None:
        """Returns the meaning of an assigned expression. It is cached, because ten lines `x = f(x)` have billions of
        paths.
        """
        if value not in self._meanings:
            self._meanings[value] = None  # a recursive lookup finds nothing
            self._meanings[value] = self.resolve(value, depth + 1)
        return self._meanings[value]

    def _assigned(self, target: cst.CSTNode) -> cst.BaseExpression | None:
        """Returns the expression that is assigned to a name: `a = x`, `a: T = x`, `a, b = x, y`."""
        parent = self.parents.get(target)
        if isinstance(parent, cst.AssignTarget):
            statement = self.parents[parent]
            return statement.value if isinstance(statement, cst.Assign) else None
        if isinstance(parent, cst.AnnAssign | cst.NamedExpr):
            return parent.value
        if isinstance(parent, cst.Element):
            group = self.parents[parent]
            whole = self._assigned(group) if isinstance(group, cst.Tuple | cst.List) else None
            if isinstance(whole, cst.Tuple | cst.List) and isinstance(group, cst.Tuple | cst.List):
                place = list(group.elements).index(parent)
                return whole.elements[place].value if place < len(whole.elements) else None
        return None

    def _call(self, node: cst.Call, depth: int) -> Resolved | None:
        function = node.func
        if isinstance(function, cst.Name) and function.value == "getattr" and len(node.args) >= 2:
            inner = self.resolve(node.args[0].value, depth + 1)
            if inner is None:
                return None
            word = text_of(node.args[1].value)
            return Resolved(name=f"{inner.name}.{CHOSEN_AT_RUN_TIME if word is None else word}", alias=inner.alias)
        imported = self.imported(node)
        if imported is not None:
            return Resolved(name=imported)
        inner = self.resolve(function, depth + 1)
        if inner is None or not is_ours(inner.name):
            return None
        row = find(inner.name)
        if row is None or row.verdict is Verdict.UNKNOWN or not row.gives:
            return None
        return Resolved(name=f"{row.gives}()", alias=inner.alias)

    def imported(self, node: cst.Call) -> str | None:
        """Returns the module that `__import__(...)` or `importlib.import_module(...)` names.

        None if it is not covered.
        """
        function = node.func
        name = function.attr.value if isinstance(function, cst.Attribute) else getattr(function, "value", "")
        if name not in ("import_module", "__import__") or not node.args:
            return None
        word = text_of(node.args[0].value)
        if word is None:
            beginning = _beginning(node.args[0].value)
            return f"{beginning.rstrip('.')}.{CHOSEN_AT_RUN_TIME}" if is_ours(beginning) else None
        if not is_ours(word):
            return None
        return word.partition(".")[0] if name == "__import__" else word


def text_of(node: cst.BaseExpression) -> str | None:
    """Returns the text of a constant string, or of a sum of strings, or None for any other expression."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        left, right = text_of(node.left), text_of(node.right)
        return None if left is None or right is None else left + right
    value = node.evaluated_value if isinstance(node, cst.SimpleString | cst.ConcatenatedString) else None
    return value if isinstance(value, str) else None


def _beginning(node: cst.BaseExpression) -> str:
    """Returns the constant text at the beginning of a composed string."""
    if isinstance(node, cst.BinaryOperation):
        return _beginning(node.left)
    if isinstance(node, cst.FormattedString) and node.parts:
        return node.parts[0].value if isinstance(node.parts[0], cst.FormattedStringText) else ""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):  # "tensorflow.{}".format(name)
        return (text_of(node.func.value) or "").partition("{")[0]
    return text_of(node) or ""


def is_ours(name: str) -> bool:
    """Returns whether a dotted name belongs to a package that the table covers.

    Example:
        >>> is_ours("tensorflow.estimator"), is_ours("torch.nn")
        (True, False)
    """
    return name.partition(".")[0] in ROOTS | {"tf"}
