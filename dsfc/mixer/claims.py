"""Claims typed: names bound, `decay(S)` put in, predicates read.

Claims speak of what is derived, so they are typed after the derivation, which says what the decays
of the states are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from dsfc.diagnostics.catalogue import ClaimForm
from dsfc.diagnostics.report import nearest
from dsfc.expr import over_time as tokens
from dsfc.expr.build import walk
from dsfc.expr.reserved_names import TIME
from dsfc.expr.statements import (
    FOLLOWED_BY,
    ClaimStatement,
    Comparison,
    Earlier,
    Predicate,
    PredicateName,
    Relation,
)
from dsfc.expr.tree import Abstract, Expr, Field, LinearMap, Map, Param, Ref, Time
from dsfc.mixer.context import Context
from dsfc.mixer.expressions import Expressions
from dsfc.mixer.shapes import named
from dsfc.mixer.times import Clock, sum_head
from dsfc.syntax import ast
from dsfc.syntax.format import format_expr

_EARLIER = (tokens.Relation.BEFORE, tokens.Relation.UP_TO)

DECAY = "decay"
"""`decay(S)` is the diagonal of the transition of state S."""


def typed_claim(
    claim: ast.Claim,
    typer: Expressions,
    decays: Mapping[str, Expr | None],
    reached: frozenset[str],
) -> ClaimStatement | None:
    """Returns a claim with its names bound, None after a report.

    Args:
        claim: the claim as written.
        typer: of the mixer that claims it.
        decays: state → diagonal of its transition, None where there is none.
        reached: the names that the output of the mixer reaches.
    """
    return _Claims(typer, decays, reached).statement(claim)


def _names(e: Expr) -> Iterator[str]:
    for part in walk(e):
        match part:
            case Ref(name=name) | Param(name=name) | Map(map=LinearMap(name=name)):
                yield name
            case Abstract(name=name):
                yield name


class _Claims:
    def __init__(
        self,
        typer: Expressions,
        decays: Mapping[str, Expr | None],
        reached: frozenset[str],
    ) -> None:
        self._typer = typer
        self._decays = decays
        self._reached = reached

    def statement(self, claim: ast.Claim) -> ClaimStatement | None:
        """One claim."""
        what = self._what(claim.relation)
        conditions = [self._condition(part) for part in claim.when]
        when = [part for part in conditions if part is not None]
        if what is None or len(when) != len(conditions):
            return None
        return ClaimStatement(text_of(claim), what, tuple(when), claim.span)

    def _condition(self, node: ast.Condition) -> Comparison | None:
        if isinstance(node, ast.Relation) and node.operators:
            if node.over is None:
                return self._comparison(node)
            return self._over_tokens(node, node.over)
        problem = f"the condition `{format_expr(node)}` compares nothing"
        self._typer.add(ClaimForm(node.span, problem=problem))
        return None

    def _what(self, node: ast.Condition) -> Comparison | Predicate | None:
        match node:
            case ast.Relation():
                return self._comparison(node)
            case ast.Name(id=name) if name in _WORDS and PredicateName(name) not in FOLLOWED_BY:
                return Predicate(PredicateName(name))
            case ast.Name(id=name) if name in _WORDS:
                problem = f"`{name}` is followed by {FOLLOWED_BY[PredicateName(name)]}"
                self._typer.add(ClaimForm(node.span, problem=problem))
                return None
            case ast.Apply(name=ast.Ident(text=name), operand=ast.Name(id=about)) if (
                name in _WORDS and PredicateName(name) in FOLLOWED_BY
            ):
                return Predicate(PredicateName(name), about)
            case ast.Call(
                name=ast.Ident(text=PredicateName.ROW_STOCHASTIC),
                args=(ast.Name(id=about),),
                brackets=(),
            ):
                return Predicate(PredicateName.ROW_STOCHASTIC, about)
        self._refuse(node)
        return None

    def _refuse(self, node: ast.Condition) -> None:
        text = format_expr(node)
        close = nearest(text.split()[0].split("(")[0], _WORDS)
        problem = f"`{text}` is no comparison and no predicate"
        expected = f"a comparison, or one of {', '.join(_WORDS)}"
        self._typer.add(ClaimForm(node.span, problem=problem, expected=expected, nearest=close))

    # --- comparisons ------------------------------------------------------------------------------

    def _over_tokens(self, node: ast.Relation, over: ast.Relation) -> Comparison | None:
        """A comparison of the present token with each one before it."""
        head = sum_head(over, Clock())
        if head is None or head.relation not in _EARLIER or head.outer != ast.Name(TIME):
            problem = f"`for {format_expr(over)}` says of no token before the present one"
            expected = "`for j < i`, or `for j <= i`"
            self._typer.add(ClaimForm(over.span, problem=problem, expected=expected))
            return None
        if not any(ast.Name(head.word) in ast.walk(part) for part in node.operands):
            problem = f"nothing in the condition is read at `{head.word}`"
            expected = f"a value at an earlier token, such as `k[{head.word}]`"
            self._typer.add(ClaimForm(node.span, problem=problem, expected=expected))
            return None
        comparison = self._comparison(node, over)
        if comparison is None:
            return None
        earlier = Earlier(head.word, head.relation is tokens.Relation.UP_TO, format_expr(over))
        return replace(comparison, earlier=earlier)

    def _comparison(
        self, node: ast.Relation, over: ast.Relation | None = None
    ) -> Comparison | None:
        operands = [self._operand(part, over) for part in node.operands]
        known = [value for value in operands if value is not None]
        if len(known) != len(operands):
            return None
        for left, right in pairwise(known):
            if not (left.axes <= right.axes or right.axes <= left.axes):
                problem = f"values over {named(left.axes)} and {named(right.axes)} are compared"
                self._typer.add(ClaimForm(node.span, problem=f"{problem}; axes must agree"))
                return None
        relations = tuple(Relation(op.value) for op in node.operators)
        for k, relation in enumerate(relations):
            complex_ = any(e.field is Field.COMPLEX for e in known[k : k + 2])
            if complex_ and relation not in (Relation.EQUAL, Relation.DIFFERENT):
                problem = f"complex numbers have no order, and `{relation}` needs one; take `abs`"
                self._typer.add(ClaimForm(node.span, problem=problem))
                return None
        return Comparison(tuple(known), relations, tuple(map(format_expr, node.operands)))

    def _operand(self, node: ast.Expr, over: ast.Relation | None) -> Expr | None:
        """A side of a comparison; of one over several tokens it may read their index."""
        args: dict[str, Expr | None] = {}
        put = self._with_decays(node, args)
        if put is None:
            return None
        if over is not None:
            # An index is typed as that of a sum is, and what is summed is what is compared.
            put = ast.Call(ast.Ident("sum", node.span), (over,), (put,), node.span)
        value = self._typer.type(put, Context("a claim", args=args))
        if value is None:
            return None
        if over is not None:
            assert isinstance(value, tokens.Past)
            value = value.body
        hidden = next((name for name in _names(value) if name not in self._reached), None)
        if hidden is not None:
            problem = f"the output does not reach `{hidden}`"
            self._typer.add(ClaimForm(node.span, problem=problem))
            return None
        if value.time is Time.PAIR and over is None:
            self._typer.add(ClaimForm(node.span, problem="a claim holds at every token alike"))
            return None
        return value

    def _with_decays(self, node: ast.Expr, args: dict[str, Expr | None]) -> ast.Expr | None:
        """The expression with a name of its own for each `decay(S)`; the names' values in args."""
        match node:
            case ast.Call(name=ast.Ident(text="decay"), args=(ast.Name(id=state) as operand,)):
                if state not in self._decays:
                    problem = f"`{state}` is no state"
                    close = nearest(state, self._decays)
                    self._typer.add(ClaimForm(operand.span, problem=problem, nearest=close))
                    return None
                value = self._decays[state]
                if value is None:
                    problem = f"the transition of `{state}` has no diagonal part"
                    self._typer.add(ClaimForm(node.span, problem=problem))
                    return None
                name = f"{DECAY}({state})"
                args[name] = value
                return ast.Name(name, node.span)
            case ast.Add() | ast.Mul() | ast.Outer() | ast.Dot():
                parts = [self._with_decays(part, args) for part in node.operands]
                known = tuple(part for part in parts if part is not None)
                return replace(node, operands=known) if len(known) == len(parts) else None
            case ast.Neg(operand=operand):
                inner = self._with_decays(operand, args)
                return None if inner is None else replace(node, operand=inner)
            case ast.Pow(base=base, exponent=exponent):
                below, above = self._with_decays(base, args), self._with_decays(exponent, args)
                if below is None or above is None:
                    return None
                return replace(node, base=below, exponent=above)
            case ast.Call():
                parts = [self._with_decays(part, args) for part in node.args]
                known = tuple(part for part in parts if part is not None)
                return replace(node, args=known) if len(known) == len(parts) else None
            case ast.Apply():
                inner = self._with_decays(node.operand, args)
                return None if inner is None else replace(node, operand=inner)
        return node


_WORDS = tuple(word.value for word in PredicateName)


def text_of(claim: ast.Claim) -> str:
    """Returns the canonical text of a claim, without its keyword."""
    when = " and ".join(format_expr(part) for part in claim.when)
    return format_expr(claim.relation) + (f" when {when}" if when else "")
