"""Prints sums over time for the float64 reference: over all tuples of tokens, masked.

A sum over j is printed over pairs (i, j), one inside of it over triples where it reads all three
tokens. The time axes stand behind the batch in the order in which the indices are bound: i, j, l.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dsfc.expr.build import mul, rewrite
from dsfc.expr.over_time import Lag, Past, Relation, Run
from dsfc.expr.tree import Bound, Expr, Fir, Now, Ref, children

from .code import Binding, Code, product
from .layout import assign
from .nodes import Printer

NOW = "i"
_MASKS = {
    Relation.UP_TO: ("past", "tril", 0),
    Relation.BEFORE: ("before", "tril", -1),
    Relation.FROM: ("onward", "triu", 0),
    Relation.AFTER: ("after", "triu", 1),
}
Times = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What sums are printed into.

    Attributes:
        at_token: code of a name's value at every token, `[B, L, *axes]`, read at `Now`.
        names: identifiers of parameters and sizes.
        like: an input's name.
        unused: gives an unused variable name, the one asked for if it is free.
        fresh: gives an unused variable name with a number.
        helpers: learns the names of emitted functions that are called.
        filtered: code of a filter at every token.
    """

    at_token: Callable[[Ref], Code]
    filtered: Callable[[Fir], Code]
    names: Mapping[str, str]
    like: str
    unused: Callable[[str], str]
    fresh: Callable[[str], str]
    helpers: set[str]


class Sums:
    """Prints the sums of one reference, each once."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._masks: dict[tuple[Relation, int], str] = {}
        self._lags: dict[tuple[Lag, str], str] = {}
        self._done: dict[tuple[Expr, Times, str], Code] = {}
        self._pending: list[str] = []

    def prologue(self) -> list[str]:
        """Returns the statements that bind masks and numbers of tokens."""
        shape, device = f"{self._around.like}.shape[1]", f"{self._around.like}.device"
        # Not whole numbers: a Python number to the power of a whole tensor is float32.
        arange = f"torch.arange({shape}, dtype=torch.float64, device={device})"
        lines = [f"    {NOW} = {arange}"] if self._lags else []
        for (relation, lag), name in self._masks.items():
            ones = f"torch.ones({shape}, {shape}, dtype=torch.float64, device={device})"
            lines.append(f"    {name} = {ones}.{_mask(relation, lag)}")
        # Masked pairs get 0: a power of a lag of the wrong sign may overflow.
        return lines + [f"    {n} = ({_lag(e)}).{mask}" for (e, mask), n in self._lags.items()]

    def pending(self) -> list[str]:
        """Returns the statements that must stand before what was printed last."""
        out, self._pending = self._pending, []
        return out

    def at_token(self, expr: Past | Lag | Run) -> Code:
        """Returns the code of a sum or product over time, seen from the token level."""
        return self._value(expr, (NOW,))

    # --- over several tokens ---------------------------------------------------------------------

    def _value(self, expr: Past | Lag | Run, times: Times, mask: str = "") -> Code:
        key = (expr, times, mask)
        if key not in self._done:
            self._done[key] = self._printed(expr, times, mask)
        return self._done[key]

    def _printed(self, expr: Past | Lag | Run, times: Times, mask: str) -> Code:
        if isinstance(expr, Lag):
            return self._number_of_tokens(expr, times, mask)
        if isinstance(expr, Run):
            return self._product(expr, times)
        outer = expr.outer or NOW
        if len(times) > 1 and _read(expr) <= {outer}:
            seen = _at(expr, outer, NOW)
            assert isinstance(seen, Past)
            return _placed(self._value(seen, (NOW,)), times, outer)
        return self._sum(expr, times)

    def _sum(self, expr: Past, times: Times) -> Code:
        inside = (*times, expr.var)
        printer = self._printer(inside, _mask(expr.relation, expr.lag))
        body = printer.print(expr.body)
        if len(body.text) > 50:
            name = self._around.fresh("pairs")
            self._pending += assign(name, expr.body, printer, self._around.fresh)
            body = Code(name, body.axes, True)
        key = (expr.relation, expr.lag)
        if key not in self._masks:
            self._masks[key] = self._around.unused(_MASKS[expr.relation][0])
        text = self._masks[key] + _index((expr.outer or NOW, expr.var), inside, batch=False)
        mask = Code(text, (), True).aligned(body.axes, True)
        masked = f"{mask} * {body.at_least(Binding.UNARY)}"
        return Code(f"({masked}).sum(dim={-1 - len(body.axes)})", body.axes, True)

    def _number_of_tokens(self, lag: Lag, times: Times, mask: str) -> Code:
        row, column = (t for t in times if any(var == t for var, _ in lag.terms))
        alone = Lag(tuple((NOW if var == row else "j", c) for var, c in lag.terms), lag.constant)
        if (alone, mask) not in self._lags:
            self._lags[alone, mask] = self._around.unused("lag")
        return Code(self._lags[alone, mask] + _index((row, column), times, batch=False), (), True)

    def _product(self, run: Run, times: Times) -> Code:
        """Π over low < var ≤ high of the factor at var."""
        low, high = _variable(run.low), _variable(run.high)
        if low == high:
            factors = [_at(run.arg, run.var, low, k) for k in range(run.high.lag, run.low.lag)]
            return self._printer(times).print(mul(*factors))
        code = self._printer((NOW,)).print(_at(run.arg, run.var, NOW))
        self._around.helpers.add("_between")
        until = f", {run.high.lag}" if run.high.lag else ""
        # The later token of the pair stands first: in sums over tokens to come that is not i.
        turned = "" if times.index(high) < times.index(low) else ".transpose(1, 2)"
        text = f"_between({code.text}{until}){turned}{_index((high, low), times, batch=True)}"
        # Factors before the lower token stand alone: there a name is 0 before the sequence.
        early = [_at(run.arg, run.var, low, k) for k in range(run.low.lag)]
        printer = self._printer(times)
        return product([Code(text, code.axes, True), *map(printer.print, early)])

    def _printer(self, times: Times, mask: str = "") -> Printer:
        """Prints values at several tokens; `mask` is that of the innermost sum."""
        around = self._around

        def ref(r: Ref) -> Code:
            if r.at is None:
                return around.at_token(r)
            now = Ref(r.name, r.over, r.kind, r.when, Now(r.at.lag))
            return _placed(around.at_token(now), times, _variable(r.at))

        def fir(f: Fir) -> Code:
            (var,) = _read(f) or {NOW}
            # Read at another token, a filter is a filter still.
            code = around.filtered(_at(f, var, NOW))  # type: ignore[arg-type]  # a filter
            return _placed(code, times, var)

        return Printer(ref, around.names, around.like, lambda e: self._value(e, times, mask), fir)


def _placed(code: Code, times: Times, var: str) -> Code:
    """The value of a token, among those of several tokens."""
    if times == (NOW,) or not code.lead:
        return code
    return Code(f"{code.text}{_index((var,), times, batch=True)}", code.axes, True)


def _index(have: Times, times: Times, batch: bool) -> str:
    """Index that gives an array with some of the time axes all of them."""
    slots = [":" if t in have else "None" for t in times]
    slots = [":", *slots] if batch else slots
    while not batch and slots and slots[0] == "None":
        slots.pop(0)
    while slots and slots[-1] == ":":
        slots.pop()
    return f"[{', '.join(slots)}]" if slots else ""


def _mask(relation: Relation, lag: int) -> str:
    _, triangle, offset = _MASKS[relation]
    diagonal = offset - lag
    return f"{triangle}({diagonal or ''})"


def _variable(at: Now | Bound) -> str:
    return at.var if isinstance(at, Bound) else NOW


def _read(expr: Expr) -> frozenset[str]:
    """The time indices that a value depends on."""
    match expr:
        case Ref(at=at):
            return frozenset() if at is None else frozenset({_variable(at)})
        case Lag(terms=terms):
            return frozenset(var for var, _ in terms)
        case Past(var=var, body=body, outer=outer):
            return (_read(body) | {outer or NOW}) - {var}
        case Run(var=var, low=low, high=high, arg=arg):
            return (_read(arg) - {var}) | {_variable(low), _variable(high)}
    return frozenset().union(*map(_read, children(expr)))


def _at(expr: Expr, old: str, new: str, lag: int = 0) -> Expr:
    """The value with one time index replaced by another, `lag` tokens earlier."""

    def moved(at: Now | Bound) -> Now | Bound:
        if _variable(at) != old:
            return at
        return Now(at.lag + lag) if new == NOW else Bound(new, at.lag + lag)

    def rule(e: Expr) -> Expr | None:
        match e:
            case Ref(name, over, kind, when, at) if at is not None:
                return Ref(name, over, kind, when, moved(at))
            case Lag(terms, constant):
                return Lag(tuple((new if var == old else var, c) for var, c in terms), constant)
            case Run(var, low, high, arg):
                return Run(var, moved(low), moved(high), arg)
            case Past(var, relation, body, outer, delay) if (outer or NOW) == old:
                return Past(var, relation, body, None if new == NOW else new, delay + lag)
        return None

    return rewrite(expr, rule)


def _lag(lag: Lag) -> str:
    """Text of a number of tokens between i, along the rows, and the other index."""
    text = ""
    for var, count in lag.terms:
        name = f"{NOW}[:, None]" if var == NOW else NOW
        term = name if abs(count) == 1 else f"{abs(count)} * {name}"
        sign = "-" if count < 0 else "+"
        text += f" {sign} {term}" if text else f"-{term}" if count < 0 else term
    if lag.constant:
        text += f" {'-' if lag.constant < 0 else '+'} {abs(lag.constant)}"
    return text


BETWEEN = '''\
def _between(x: Tensor, lag: int = 0) -> Tensor:
    """Π over j < l ≤ i - lag of x[l], for all pairs (i, j): `[B, L, L, ...]`."""
    at = torch.arange(x.shape[1], device=x.device)
    later = (at[:, None] > at).reshape(len(at), len(at), *(1,) * (x.ndim - 2))
    one = torch.ones_like(x[:, :, None])
    rows = torch.where(later, x[:, :, None], one).cumprod(1)
    return torch.cat((one.expand_as(rows)[:, :lag], rows), 1)[:, : len(at)]
'''
