"""The domain of a question as text: comparisons of names with numbers, read by the spec's grammar.

    abs(u) <= 2, 0.5 ≤ λ ≤ 0.9, norm[n](k) >= 1/10, L <= 4096

Each comparison bounds the entries of one name, their absolute values, Euclidean lengths along an
axis, or L, the number of tokens. Nothing else is a bound, and nothing is evaluated but numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lark import Token
from lark.exceptions import UnexpectedToken

from dsfc.diagnostics.catalogue import SyntaxProblem
from dsfc.diagnostics.report import DiagnosticError, Reporter
from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.source import Source, Span
from dsfc.syntax import ast, grammar, lex
from dsfc.syntax.build import Builder
from dsfc.syntax.mistakes import expectation, name_of

LENGTH = "L"
"""The name of the number of tokens."""

_LARGEST_EXPONENT = 256


@dataclass(frozen=True, slots=True)
class Bounded:
    """Bounds on one name; both ends are taken.

    Attributes:
        name: what is bounded; `LENGTH` for the number of tokens.
        low: lower end, if there is one.
        high: upper end, if there is one.
        axis: name of the axis along which lengths are bounded; "" for entries.
        modulus: whether absolute values are bounded.
        span: where the comparison stands.
    """

    name: str
    low: Fraction | None
    high: Fraction | None
    axis: str
    modulus: bool
    span: Span


def parse_domain(text: str, limits: Limits = DEFAULT_LIMITS) -> tuple[Bounded, ...]:
    """Returns the bounds that a text states.

    Args:
        text: comparisons with commas between them.
        limits: bounds on size and nesting.

    Raises:
        DiagnosticError: it states no bounds, or no such bounds; the diagnostic says where.
    """
    source = Source("--for", text)
    reporter = Reporter()
    tokens = lex.read_tokens(source, limits, reporter)
    reporter.raise_errors()
    if not tokens:
        raise _problem(source.span(), "no bounds are stated; write such as `abs(u) <= 2`")
    builder = Builder(source, limits, reporter)
    spec = builder.spec(_tree(source, tokens), ())
    (unit,) = spec.units
    return tuple(
        _bounded(item.relation) for item in unit.items if isinstance(item, ast.Claim)
    )


def _tree(source: Source, tokens: Sequence[Token]):  # noqa: ANN202 - lark's
    """The comparisons as claims of a mixer that has nothing else."""
    automaton = grammar.automaton()
    end = len(source.text)
    for word in ("_MIXER", "NAME", "LBRACE", "_CLAIM"):
        automaton.feed_token(Token(word, "domain", start_pos=0, end_pos=0))
    depth = 0
    for token in tokens:
        depth += (token.type in ("LPAR", "LSQB")) - (token.type in ("RPAR", "RSQB"))
        try:
            if token.type == "COMMA" and not depth:
                automaton.feed_token(Token("_SEP", ",", start_pos=token.start_pos, end_pos=token.end_pos))
                automaton.feed_token(Token("_CLAIM", "claim", start_pos=token.end_pos, end_pos=token.end_pos))
                continue
            if token.type in ("LBRACE", "RBRACE", "_SEP", *lex.KEYWORDS):
                raise _problem(_span(source, token), f"{name_of(token)} does not stand in a bound")
            automaton.feed_token(token)
        except UnexpectedToken:
            wanted = expectation(grammar.accepted(automaton))
            raise _problem(
                _span(source, token),
                f"{name_of(token)} cannot stand here; expected {wanted}",
            ) from None
    try:
        automaton.feed_token(Token("RBRACE", "}", start_pos=end, end_pos=end))
    except UnexpectedToken:
        raise _problem(source.span(end, end), "the text ends within a bound") from None
    return automaton.feed_token(Token("$END", "", start_pos=end, end_pos=end))


def _span(source: Source, token: Token) -> Span:
    start = token.start_pos or 0
    return source.span(start, start + max(len(token), 1))


def _problem(span: Span, problem: str) -> DiagnosticError:
    return DiagnosticError((SyntaxProblem(span, problem=problem),))


_RISING = {ast.CmpOp.LE: True, ast.CmpOp.GE: False}


def _bounded(condition: ast.Condition) -> Bounded:
    """The bounds of one comparison: number ≤ name ≤ number, or one end of it."""
    if not isinstance(condition, ast.Relation):
        raise _problem(condition.span, "this is no comparison; write such as `abs(u) <= 2`")
    operators, operands = condition.operators, condition.operands
    if operators == (ast.CmpOp.EQ,):
        operators, operands = (ast.CmpOp.LE, ast.CmpOp.LE), (operands[1], operands[0], operands[1])
    if any(op not in _RISING for op in operators) or len({_RISING[op] for op in operators}) != 1:
        raise _problem(condition.span, "a bound is a comparison with `<=` or with `>=`")
    if not _RISING[operators[0]]:
        operands = operands[::-1]
    values = [_number(x) for x in operands]
    named = [k for k, value in enumerate(values) if value is None]
    if len(named) != 1 or len(operands) > 3 or (len(operands) == 3 and named != [1]):
        raise _problem(condition.span, "a bound compares one name with numbers")
    (k,) = named
    low = values[k - 1] if k else None
    high = values[k + 1] if k + 1 < len(values) else None
    name, axis, modulus = _term(operands[k])
    if name == LENGTH:
        if axis or modulus:
            raise _problem(operands[k].span, "L is the number of tokens, and bounded as it is")
        if any(x is not None and (x.denominator != 1 or x < 1) for x in (low, high)):
            raise _problem(condition.span, "L is bounded by positive integers")
    if low is not None and high is not None and low > high:
        raise _problem(condition.span, f"nothing is between {low} and {high}")
    return Bounded(name, low, high, axis, modulus, condition.span)


def _term(e: ast.Expr) -> tuple[str, str, bool]:
    """(name, axis, whether the absolute value) of what a comparison bounds."""
    match e:
        case ast.Name(id=name):
            return name, "", False
        case ast.Call(name=ast.Ident(text="abs"), brackets=(), args=(ast.Name(id=name),)):
            return name, "", True
        case ast.Call(name=ast.Ident(text="norm"), brackets=(ast.Name(id=axis),), args=(ast.Name(id=name),)):
            return name, axis, False
    raise _problem(e.span, "a bound is one on a name `x`, on `abs(x)` or on `norm[axis](x)`")


def _number(e: ast.Expr) -> Fraction | None:
    """The value of numbers, put together by arithmetic; None where there is a name."""
    match e:
        case ast.Num(value=value):
            return value
        case ast.Neg(operand=x):
            value = _number(x)
            return None if value is None else -value
        case ast.Mul(operands=operands, operators=operators):
            parts = [_number(x) for x in operands]
            if any(x is None for x in parts):
                return None
            out = parts[0]
            for op, x in zip(operators, parts[1:], strict=True):
                assert out is not None and x is not None
                if op is ast.MulOp.OVER and not x:
                    raise _problem(e.span, "a denominator is 0")
                out = out / x if op is ast.MulOp.OVER else out * x
            return out
        case ast.Pow(base=base, exponent=exponent):
            x, n = _number(base), _number(exponent)
            if x is None or n is None:
                return None
            if n.denominator != 1 or abs(n) > _LARGEST_EXPONENT or (n < 0 and not x):
                raise _problem(e.span, "an exponent is an integer of moderate size")
            return x ** int(n)
    return None
