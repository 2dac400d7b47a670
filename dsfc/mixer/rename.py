"""Names in syntax trees, replaced all at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar, cast

from dsfc.syntax import ast

_NodeT = TypeVar("_NodeT", bound=ast.Condition)


def renamed(node: _NodeT, names: Mapping[str, str]) -> _NodeT:
    """Returns the expression with names replaced; spans stay those of the text."""
    return cast(_NodeT, _renamed(node, names))


def _renamed(node: ast.Condition, names: Mapping[str, str]) -> ast.Condition:
    def ident(name: ast.Ident) -> ast.Ident:
        return replace(name, text=names[name.text]) if name.text in names else name

    def go(part: _NodeT) -> _NodeT:
        return renamed(part, names)

    match node:
        case ast.Num():
            return node
        case ast.Name():
            return replace(node, id=names.get(node.id, node.id))
        case ast.Index():
            return replace(node, name=ident(node.name), brackets=tuple(map(go, node.brackets)))
        case ast.Call():
            brackets, args = tuple(map(go, node.brackets)), tuple(map(go, node.args))
            return replace(node, name=ident(node.name), brackets=brackets, args=args)
        case ast.Apply():
            return replace(node, name=ident(node.name), operand=go(node.operand))
        case ast.Neg():
            return replace(node, operand=go(node.operand))
        case ast.Pow():
            return replace(node, base=go(node.base), exponent=go(node.exponent))
        case ast.Dot() | ast.Mul() | ast.Outer() | ast.Add() | ast.Relation():
            return replace(node, operands=tuple(map(go, node.operands)))
