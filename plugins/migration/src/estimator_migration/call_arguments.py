"""Arguments of calls: by keyword where their order differs, renamed, and with the defaults of TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import libcst as cst

from estimator_migration.rows import Row

_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
_COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def called(call: cst.Call, row: Row) -> cst.BaseExpression:
    """Returns the replacement of a call whose function is already the successor."""
    if row.uncalled:
        return call.func.with_changes(lpar=[*call.lpar, *call.func.lpar], rpar=[*call.func.rpar, *call.rpar])
    done = call.with_changes(args=successors(call.args, row))
    if not row.around:
        return done
    inner = cst.Arg(done.with_changes(lpar=(), rpar=()))
    function = cst.parse_expression(replace(row, home=row.around).place)
    return cst.Call(func=function, args=[inner], lpar=call.lpar, rpar=call.rpar)


def successors(args: Sequence[cst.Arg], row: Row) -> list[cst.Arg]:
    """Returns the arguments of the successor, for those of a call of TensorFlow."""
    return _with_defaults(_renamed(_by_keyword(args, row), row), row)


def _by_keyword(args: Sequence[cst.Arg], row: Row) -> list[cst.Arg]:
    """Returns the arguments, by keyword if their place differs in the successor."""
    by_place = [argument for argument in args if argument.keyword is None]
    if len(by_place) > len(row.places) or _starred(args):
        return list(args)
    moved = [
        argument.with_changes(keyword=cst.Name(place[:-1]), equal=_EQUAL) if place.endswith("=") else argument
        for argument, place in zip(by_place, row.places, strict=False)
    ]
    return [*moved, *args[len(by_place) :]]


def _renamed(args: Sequence[cst.Arg], row: Row) -> list[cst.Arg]:
    """Returns the arguments with the names of the successor, without those that it does not have."""
    kept: list[cst.Arg] = []
    said = {argument.keyword.value for argument in args if argument.keyword is not None}.difference(row.arguments)
    for argument in args:
        word = "" if argument.keyword is None else argument.keyword.value
        if word not in row.arguments or row.arguments[word] in said:  # a repeated keyword is a syntax error
            kept.append(argument)
        elif row.arguments[word] == "/":
            kept.append(argument.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT))
        elif row.arguments[word]:
            kept.append(argument.with_changes(keyword=cst.Name(row.arguments[word])))
    if kept and len(kept) < len(args):
        kept[-1] = kept[-1].with_changes(comma=args[-1].comma, whitespace_after_arg=args[-1].whitespace_after_arg)
    return kept


def _with_defaults(args: Sequence[cst.Arg], row: Row) -> list[cst.Arg]:
    """Returns the arguments, and the defaults of TensorFlow that the successor does not have."""
    by_place = sum(argument.keyword is None for argument in args)
    said = {argument.keyword.value for argument in args if argument.keyword is not None}.union(row.places[:by_place])
    done = list(args)
    for name, value in row.defaults.items() if not _starred(args) else ():
        if name not in said:
            fresh = cst.Arg(keyword=cst.Name(name), value=cst.parse_expression(value), equal=_EQUAL)
            if done:
                last = done[-1]
                done[-1] = last.with_changes(comma=_COMMA, whitespace_after_arg=cst.SimpleWhitespace(""))
                fresh = fresh.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
            done.append(fresh)
    return done


def _starred(args: Iterable[cst.Arg]) -> bool:
    return any(argument.star for argument in args)
