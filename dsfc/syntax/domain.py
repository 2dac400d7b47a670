"""The domain of a question as text: comparisons of names with numbers, read by the spec's grammar.

    abs(u) <= 2, 0.5 ≤ λ ≤ 0.9, norm[n](k) >= 1/10, L <= 4096

Each comparison bounds the entries of one name, their absolute values, Euclidean lengths along an
axis, or L, the number of tokens. Nothing else is a bound, and nothing is evaluated but numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lark import Token, Tree
from lark.exceptions import UnexpectedToken

from dsfc.diagnostics.catalogue import SyntaxProblem
from dsfc.diagnostics.report import DiagnosticError, Reporter
from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.source import Source, Span
from dsfc.syntax import ast, grammar, lex
from dsfc.syntax.build import Builder
from dsfc.syntax.token_names import name_of

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
    return tuple(_bounded(item.relation) for item in unit.items if isinstance(item, ast.Claim))


def _tree(source: Source, tokens: Sequence[Token]) -> Tree[Token]:
    """The comparisons as claims of a mixer that has nothing else."""
    automaton, end, depth = grammar.automaton(), len(source.text), 0

    def feed(kind: str, text: str, at: int) -> None:
        automaton.feed_token(Token(kind, text, start_pos=at, end_pos=at))

    for kind in ("_MIXER", "NAME", "LBRACE", "_CLAIM"):
        feed(kind, "domain", 0)
    for token in tokens:
        depth += (token.type in ("LPAR", "LSQB")) - (token.type in ("RPAR", "RSQB"))
        if token.type in ("LBRACE", "RBRACE", "_SEP", *lex.KEYWORDS):
            raise _problem(_span(source, token), f"{name_of(token)} does not stand in a bound")
        try:
            if token.type == "COMMA" and not depth:
                feed("_SEP", ",", token.start_pos or 0)
                feed("_CLAIM", "claim", token.start_pos or 0)
            else:
                automaton.feed_token(token)
        except UnexpectedToken:
            place = _span(source, token)
            raise _problem(place, f"{name_of(token)} cannot stand here") from None
    try:
        feed("RBRACE", "}", end)
    except UnexpectedToken:
        raise _problem(source.span(end, end), "the text ends within a bound") from None
    tree: Tree[Token] = automaton.feed_token(Token("$END", "", start_pos=end, end_pos=end))
    return tree


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
        case ast.Call(
            name=ast.Ident(text="norm"), brackets=(ast.Name(id=axis),), args=(ast.Name(id=name),)
        ):
            return name, axis, False
    raise _problem(e.span, "a bound is one on a name `x`, on `abs(x)` or on `norm[axis](x)`")


def _number(e: ast.Expr) -> Fraction | None:
    """The value of numbers, put together by arithmetic; None where there is a name."""
    match e:
        case ast.Num():
            return e.value
        case ast.Neg():
            inner = _number(e.operand)
            return None if inner is None else -inner
        case ast.Mul():
            return _product(e)
        case ast.Pow():
            base, exponent = _number(e.base), _number(e.exponent)
            if base is None or exponent is None:
                return None
            large = abs(exponent) > _LARGEST_EXPONENT
            if exponent.denominator != 1 or large or (exponent < 0 and not base):
                raise _problem(e.span, "an exponent is an integer of moderate size")
            whole = int(exponent)
            return base**whole if whole >= 0 else 1 / base**-whole
    return None


def _product(e: ast.Mul) -> Fraction | None:
    """The value of a product of numbers and quotients."""
    out = Fraction(1)
    for operator, operand in zip((ast.MulOp.TIMES, *e.operators), e.operands, strict=True):
        value = _number(operand)
        if value is None:
            return None
        if operator is ast.MulOp.OVER and not value:
            raise _problem(e.span, "a denominator is 0")
        out = out / value if operator is ast.MulOp.OVER else out * value
    return out
