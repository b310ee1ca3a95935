"""Checks whether a program uses more of a value than equality, also through a name: `d = tf.int32`, then `d.max`."""

from __future__ import annotations

from enum import Enum, auto

import libcst as cst

from estimator_migration.resolve import Resolver


class Held(Enum):
    """The way in which an expression holds the value."""

    ITSELF = auto()
    ELEMENT = auto()  # an element of a list or tuple
    VALUE = auto()  # a value of a dict


_HASHING = frozenset({"set", "frozenset", "dict", "OrderedDict", "Counter", "fromkeys", "update", "hash"})
_HASHING_IT = frozenset({"add", "discard", "remove"})
#: Methods of dicts whose first argument is a key. The other arguments are possible results.
_LOOKING_UP = frozenset({"get", "pop", "setdefault"})
_PASSING = frozenset({"list", "tuple", "sorted", "reversed", "iter", "zip", "enumerate", "chain", "copy", "deepcopy"})
_INSIDE_OF_DICTS = {"items": Held.ELEMENT, "values": Held.ELEMENT, "copy": Held.VALUE}
_DISPLAYS = cst.List | cst.Tuple


class OpenedValues:
    """Finds the uses of a value that another object will replace.

    The other object is equal to it, but has another hash, another identity and other attributes.

    Args:
        resolver: the program.
    """

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self._bound: set[tuple[str, bool, Held]] = set()

    def has(self, node: cst.CSTNode, held: Held = Held.ITSELF) -> bool:
        """Returns whether the value is called, hashed, compared with `is`, or has an attribute that the program uses.

        Args:
            node: an expression that holds the value.
            held: the way in which it holds the value.
        """
        parent = self._parent(node)
        match parent:
            case cst.Attribute():
                return held is Held.ITSELF or self._of_a_method(parent, held)
            case cst.Call():
                return held is Held.ITSELF
            case cst.Arg():
                return self._argument(parent, held)
            case cst.Element() | cst.StarredElement():
                around = self._parent(parent)
                inside = Held.ELEMENT if held is Held.ITSELF else held
                hashed = isinstance(around, cst.Set) and held is not Held.VALUE
                return around is not None and (hashed or self.has(around, inside))
            case cst.DictElement():
                as_key = parent.key is node and held is not Held.VALUE
                around = self._parent(parent)
                return as_key or (around is not None and parent.key is not node and self.has(around, Held.VALUE))
            case cst.Index():
                return held is not Held.VALUE
            case cst.Subscript():
                return held is Held.ITSELF or self.has(parent)
            case cst.IfExp():
                return parent.test is not node and self.has(parent, held)
            case cst.BooleanOperation():
                return self.has(parent, held)
            case cst.Comparison() | cst.ComparisonTarget():
                return held is Held.ITSELF and self._is_compared_otherwise(parent)
            case _:
                return self._has_by_name(node, parent, held)

    def _has_by_name(self, node: cst.CSTNode, parent: cst.CSTNode | None, held: Held) -> bool:
        match parent:
            case cst.NamedExpr():
                return parent.value is node and (self._name(parent.target, held) or self.has(parent, held))
            case cst.Assign():
                return any(self._name(each.target, held) for each in parent.targets)
            case cst.AnnAssign() | cst.AugAssign():
                return parent.value is node and self._name(parent.target, held)
            case cst.Param():
                return parent.default is node and self._name(parent.name, held)
            case cst.For() | cst.CompFor():
                one_by_one = parent.iter is node and held is Held.ELEMENT
                return one_by_one and self._name(_last_of_items(parent), Held.ITSELF)
            case cst.ListComp() | cst.GeneratorExp():
                return self.has(parent, Held.ELEMENT)
            case cst.SetComp():
                return held is not Held.VALUE
            case cst.DictComp():
                return (parent.key is node and held is not Held.VALUE) or self.has(parent, Held.VALUE)
            case _:
                return False

    def _of_a_method(self, method: cst.Attribute, held: Held) -> bool:
        """Handles `kinds.values()` and `kinds.get(x)`. Other methods of a list or dict do not return the value."""
        call, name = self._parent(method), method.attr.value
        if not isinstance(call, cst.Call) or call.func is not method:
            return False
        if name in _LOOKING_UP:
            return self.has(call)
        return name in _INSIDE_OF_DICTS and self.has(call, _INSIDE_OF_DICTS[name])

    def _argument(self, argument: cst.Arg, held: Held) -> bool:
        call = self._parent(argument)
        if not isinstance(call, cst.Call):
            return True  # a class derives from it
        name = _last_word(call.func)
        if name in _LOOKING_UP and isinstance(call.func, cst.Attribute):
            return held is not Held.VALUE if call.args[0] is argument else self.has(call, held)
        hashing = name in _HASHING or (name in _HASHING_IT and isinstance(call.func, cst.Attribute))
        if hashing and argument.keyword is None:
            return held is not Held.VALUE or (name != "update" and self.has(call, held))
        return name in _PASSING and self.has(call, held)

    def _is_compared_otherwise(self, parent: cst.Comparison | cst.ComparisonTarget) -> bool:
        """Returns whether the value is compared with `is`, or looked up in a possible set."""
        around = parent if isinstance(parent, cst.Comparison) else self._parent(parent)
        if not isinstance(around, cst.Comparison):
            return False
        left = around.left
        for each in around.comparisons:
            if isinstance(each.operator, cst.Is | cst.IsNot):
                if not (_is_none(left) or _is_none(each.comparator)):
                    return True
            elif parent is around and not isinstance(each.operator, cst.Equal | cst.NotEqual):
                return not isinstance(self.resolver.written(each.comparator), _DISPLAYS)
            left = each.comparator
        return False

    def _name(self, target: cst.BaseExpression, held: Held) -> bool:
        """Returns whether the program depends on the value through a name that is bound to it."""
        if isinstance(target, _DISPLAYS):
            return any(self._name(each.value, Held.ITSELF) for each in target.elements)
        if isinstance(target, cst.Subscript):
            return self._name(target.value, Held.VALUE)
        if isinstance(target, cst.Attribute):
            return self._by_name(target.attr.value, True, held)
        if not isinstance(target, cst.Name):
            return False
        in_class = self._stands_in_a_class(target) and self._by_name(target.value, True, held)
        return in_class or self._by_name(target.value, False, held)

    def _by_name(self, word: str, of_object: bool, held: Held) -> bool:
        key = (word, of_object, held)
        if key in self._bound:
            return False
        self._bound.add(key)
        found = self.resolver.attributes if of_object else self.resolver.names
        return any(self.has(each, held) for each in found.get(word, ()))

    def _stands_in_a_class(self, node: cst.CSTNode) -> bool:
        around = (each for each in self.resolver.above(node) if isinstance(each, cst.FunctionDef | cst.ClassDef))
        return isinstance(next(around, None), cst.ClassDef)

    def _parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self.resolver.parents.get(node)


def _last_of_items(loop: cst.For | cst.CompFor) -> cst.BaseExpression:
    """Returns the target of a loop, or the second target of `for key, value in x.items()`."""
    target = loop.target
    of_items = isinstance(loop.iter, cst.Call) and _last_word(loop.iter.func) == "items"
    if of_items and isinstance(target, _DISPLAYS) and len(target.elements) == 2:
        return target.elements[1].value
    return target


def _last_word(function: cst.BaseExpression) -> str:
    name = function.attr if isinstance(function, cst.Attribute) else function
    return name.value if isinstance(name, cst.Name) else ""


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"
