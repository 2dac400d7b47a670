"""Prints the float64 reference: the mixer's definitions as written, evaluated literally.

Token-wise definitions are printed over `[B, L]`. A sum over time is printed over all pairs (i, j)
of tokens, masked. A state's update, with the definitions through which it reads its own past, runs
in a loop over time; states that read each other share one. Nothing here knows the derived system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TypeVar

from dsfc.plan.ir import Plan, Reference
from dsfc.primitives.build import walk
from dsfc.primitives.expr import Axis, Bound, Expr, Fir, Lag, Now, Past, Ref, Relation, Run
from dsfc.primitives.graph import components

from .layout import assign
from .nodes import Binding, Code, Printer, filtered

ExprT = TypeVar("ExprT", bound=Expr)
_MASKS = {
    Relation.UP_TO: ("past", "tril()"),
    Relation.BEFORE: ("before", "tril(-1)"),
    Relation.FROM: ("onward", "triu()"),
    Relation.AFTER: ("after", "triu(1)"),
}


class ReferenceText:
    """The body of the reference function, and which helper functions it calls.

    Attributes:
        lines: statements, indented by four blanks.
        result: variable that holds the output.
        helpers: names of `HELPERS` it calls.
    """

    def __init__(self, plan: Plan, names: Callable[[str], str], like: str) -> None:
        """Prints the definitions of `plan`; `names` gives identifiers, `like` an input's name."""
        self._plan = plan
        self._ident = names
        self._like = like
        self._names = {t.name: names(t.name) for t in (*plan.params, *plan.buffers)}
        self._names |= {d.axis.name: names(d.axis.name) for d in plan.axes}
        self._used = set(self._names.values()) | {names(r.name) for r in plan.reference}
        self._used |= {names(t.name) for t in plan.inputs} | {"i", like}
        self._used |= {name for name, _ in _MASKS.values()}
        self._masks: dict[str, str] = {}
        self._lags: dict[tuple[Lag, Relation], str] = {}
        self._pending: list[str] = []
        self._sums: dict[Past, Code] = {}
        self._numbers: set[str] = set()
        self.helpers: set[str] = set()
        self._axes = {t.name: t.axes for t in plan.inputs}
        self._axes |= {r.name: r.axes for r in plan.reference}
        self._const = {r.name for r in plan.reference if r.value.time == 0 and not r.update}
        body: list[str] = []
        for part in _parts(plan.reference):
            recurrent = any(r.update for r in part)
            body += self._loop(part) if recurrent else self._token(*part)
        self.lines = [*self._prologue(), *body]
        self.result = names(plan.result)

    def _prologue(self) -> list[str]:
        lines = []
        shape = f"{self._like}.shape[1]"
        if self._masks or self._lags:
            lines.append(f"    i = torch.arange({shape}, device={self._like}.device)")
        for name, call in self._masks.items():
            ones = f"torch.ones({shape}, {shape}, dtype=torch.float64, device={self._like}.device)"
            lines.append(f"    {name} = {ones}.{call}")
        for (lag, relation), name in self._lags.items():
            # Masked pairs get 0: a power of a lag of the wrong sign may overflow.
            lines.append(f"    {name} = ({_lag(lag)}).{_MASKS[relation][1]}")
        if lines and not self._lags:
            lines.pop(0)
        return lines

    # --- over [B, L] -----------------------------------------------------------------------------

    def _token(self, r: Reference) -> list[str]:
        printer = Printer(self._at_token, self._names, self._like, self._past, self._filter)
        lines = assign(self._ident(r.name), r.value, printer, self._fresh, wrap=self._full(r))
        return [*self._taken_pending(), *lines]

    def _taken_pending(self) -> list[str]:
        pending, self._pending = self._pending, []
        return pending

    def _full(self, r: Reference) -> Callable[[Code], str]:
        """Gives a value the axes of its definition, and that of an update the batch."""

        def wrap(code: Code) -> str:
            if r.update and (code.number or not code.lead):
                sizes = ", ".join([f"{self._like}.shape[0]", *self._sizes(r.axes)])
                if code.number:
                    return f"{self._like}.new_full(({sizes},), {code.text})"
                return f"{code.aligned(r.axes, False)}.expand({sizes})"
            if code.number:
                self._numbers.add(r.name)
                return code.text
            return code.aligned(r.axes, code.lead)

        return wrap

    def _at_token(self, ref: Ref) -> Code:
        code = self._named(ref)
        if isinstance(ref.at, Now) and ref.at.lag:
            self.helpers.add("_delay")
            return Code(f"_delay({code.text}, {ref.at.lag})", code.axes, True)
        return code

    def _named(self, ref: Ref) -> Code:
        if ref.name == "first":
            self.helpers.add("_first")
            return Code(f"_first({self._like})", (), True)
        axes = tuple(sorted(ref.over))
        number = ref.name in self._numbers
        return Code(self._ident(ref.name), axes, ref.at is not None, number=number)

    def _filter(self, fir: Fir) -> Code:
        printer = Printer(self._at_token, self._names, self._like)
        self.helpers |= {"_filtered", "_delay"}
        return filtered("_filtered", fir, printer.print(fir.arg), printer.print(fir.weight))

    # --- over pairs [B, L, L] --------------------------------------------------------------------

    def _past(self, expr: Past | Lag | Run) -> Code:
        """A sum over time, seen from the token level."""
        if not isinstance(expr, Past):
            raise TypeError(f"{type(expr).__name__} outside a sum")
        if expr not in self._sums:
            self._sums[expr] = self._sum(expr)
        return self._sums[expr]

    def _sum(self, expr: Past) -> Code:
        if expr.lag:
            raise TypeError("a sum over time, delayed")
        printer = Printer(
            self._at_pair(expr.var), self._names, self._like, self._inside(expr.var, expr.relation)
        )
        body = printer.print(expr.body)
        if len(body.text) > 50:
            name = self._fresh("pairs")
            self._pending += assign(name, expr.body, printer, self._fresh)
            body = Code(name, body.axes, True)
        name, call = _MASKS[expr.relation]
        self._masks[name] = call
        mask = Code(name, (), True)
        product = f"{mask.aligned(body.axes, True)} * {body.at_least(Binding.UNARY)}"
        return Code(f"({product}).sum(dim={-1 - len(body.axes)})", body.axes, True)

    def _at_pair(self, var: str) -> Callable[[Ref], Code]:
        def ref(r: Ref) -> Code:
            if r.at is None:
                return self._named(r)
            lag = r.at.lag
            base = Ref(r.name, r.over, r.kind, r.when, Now(lag))
            code = self._at_token(base)
            inner = isinstance(r.at, Bound)
            if isinstance(r.at, Bound) and r.at.var != var:
                raise TypeError("a sum inside a sum that reads both indices")
            index = "[:, None]" if inner else "[:, :, None]"
            return Code(f"{code.text}{index}", code.axes, True)

        return ref

    def _inside(self, var: str, relation: Relation) -> Callable[[Past | Lag | Run], Code]:
        def inner(e: Past | Lag | Run) -> Code:
            if isinstance(e, Lag):
                if (e, relation) not in self._lags:
                    self._lags[e, relation] = self._unused("lag")
                name = self._lags[e, relation]
                return Code(name, (), True)
            if isinstance(e, Run):
                printer = Printer(self._at_run(e.var), self._names, self._like)
                code = printer.print(e.arg)
                self.helpers.add("_between")
                return Code(f"_between({code.text})", code.axes, True)
            if e.outer != var:
                raise TypeError("a sum inside a sum that reads the outer token")
            body = Past(e.var, e.relation, e.body, None, e.lag)
            code = self._past(body)
            return Code(f"{code.text}[:, None]", code.axes, True)

        return inner

    def _at_run(self, var: str) -> Callable[[Ref], Code]:
        def ref(r: Ref) -> Code:
            lag = r.at.lag if r.at is not None else 0
            at = None if r.at is None else Now(lag)
            return self._at_token(Ref(r.name, r.over, r.kind, r.when, at))

        return ref

    # --- one loop over time ----------------------------------------------------------------------

    def _loop(self, members: list[Reference]) -> list[str]:
        """A loop over time; a state's variable holds its previous value.

        Filters and sums over time inside of it read what stands outside, and are computed first.
        """
        first: list[str] = []

        def before(make: Callable[[ExprT], Code]) -> Callable[[ExprT], Code]:
            def printed(expr: ExprT) -> Code:
                code = make(expr)
                name = self._fresh("whole")
                first.extend([*self._taken_pending(), f"    {name} = {code.text}"])
                return Code(f"{name}[:, i]", code.axes, True)

            return cache(printed)

        rows = {r.name: self._unused(f"{self._ident(r.name)}_rows") for r in members}
        now = {r.name: self._unused(f"{self._ident(r.name)}_i") for r in members}
        lines = []
        for r in members:
            if r.update:
                sizes = ", ".join([f"{self._like}.shape[0]", *self._sizes(r.axes)])
                lines.append(f"    {self._ident(r.name)} = {self._like}.new_zeros({sizes})")
            lines.append(f"    {rows[r.name]} = []")
        lines.append(f"    for i in range({self._like}.shape[1]):")
        updates = {r.name for r in members if r.update}
        for r in members:
            printer = Printer(
                self._at_step(now, rows, updates),
                self._names,
                self._like,
                before(self._past),
                before(self._filter),
            )
            lines += assign(now[r.name], r.value, printer, self._fresh, "        ", self._full(r))
        for r in members:
            lines.append(f"        {rows[r.name]}.append({now[r.name]})")
            if r.update:
                lines.append(f"        {self._ident(r.name)} = {now[r.name]}")
        self.helpers.add("_in_time")
        for r in members:
            row, shape = rows[r.name], self._shape(r.axes)
            lines.append(f"    {self._ident(r.name)} = _in_time({row}, {self._like}, {shape})")
        return [*first, *lines]

    def _at_step(
        self, now: Mapping[str, str], rows: Mapping[str, str], updates: set[str]
    ) -> Callable[[Ref], Code]:
        """Reads at token i; `now` and `rows` hold the values of the loop's own names."""

        def ref(r: Ref) -> Code:
            axes = tuple(sorted(r.over))
            if r.at is None:
                return self._named(r)
            if r.name not in now:
                return Code(f"{self._at_token(r).text}[:, i]", axes, True)
            if r.at.lag == 0:
                return Code(now[r.name], axes, True)
            if r.at.lag == 1 and r.name in updates:
                return Code(self._ident(r.name), axes, True)
            self.helpers.add("_row")
            text = f"_row({rows[r.name]}, {r.at.lag}, {self._like}, {self._shape(axes)})"
            return Code(text, axes, True)

        return ref

    def _sizes(self, axes: tuple[Axis, ...]) -> list[str]:
        return [self._names[a.name] for a in axes]

    def _shape(self, axes: tuple[Axis, ...]) -> str:
        return f"({', '.join(self._sizes(axes))}{',' if len(axes) == 1 else ''})"

    def _unused(self, name: str) -> str:
        while name in self._used:
            name += "_"
        self._used.add(name)
        return name

    def _fresh(self, name: str) -> str:
        count = 1
        while f"{name}_{count}" in self._used:
            count += 1
        self._used.add(f"{name}_{count}")
        return f"{name}_{count}"


def _lag(lag: Lag) -> str:
    """Text of a number of tokens between i, along the rows, and the other index."""
    text = ""
    for var, count in lag.terms:
        name = "i[:, None]" if var == "i" else "i"
        term = name if abs(count) == 1 else f"{abs(count)} * {name}"
        sign = "-" if count < 0 else "+"
        text += f" {sign} {term}" if text else f"-{term}" if count < 0 else term
    if lag.constant:
        text += f" {'-' if lag.constant < 0 else '+'} {abs(lag.constant)}"
    return text


def _parts(references: Iterable[Reference]) -> Iterator[list[Reference]]:
    """Definitions that read each other, each after those that it reads at the same token."""
    items = {r.name: r for r in references}
    reads = {n: [e for e in walk(r.value) if isinstance(e, Ref)] for n, r in items.items()}
    for part in components({n: sorted({e.name for e in found}) for n, found in reads.items()}):
        now = {
            n: sorted({e.name for e in reads[n] if e.name in part and e.at == Now(0)}) for n in part
        }
        yield [items[n] for group in components(now) for n in group]


HELPERS = {
    "_delay": '''\
def _delay(x: Tensor, lag: int) -> Tensor:
    """The values `lag` tokens earlier; 0 before the first."""
    return F.pad(x, (0, 0) * (x.ndim - 2) + (lag, 0))[:, : x.shape[1]]
''',
    "_filtered": '''\
def _filtered(x: Tensor, weight: Tensor, dim: int) -> Tensor:
    """Σ over r of weight[r] · x[i - r], r along `dim` of the weight."""
    return sum(w * _delay(x, r) for r, w in enumerate(weight.unbind(dim)))
''',
    "_first": '''\
def _first(x: Tensor) -> Tensor:
    """1 at the first token, else 0."""
    return (torch.arange(x.shape[1], device=x.device) == 0).to(x.dtype).expand(x.shape[:2])
''',
    "_between": '''\
def _between(x: Tensor) -> Tensor:
    """Π over j < l ≤ i of x[l], for all pairs (i, j): `[B, L, L, ...]`."""
    at = torch.arange(x.shape[1], device=x.device)
    later = (at[:, None] > at).reshape(len(at), len(at), *(1,) * (x.ndim - 2))
    return torch.where(later, x[:, :, None], torch.ones_like(x[:, :, None])).cumprod(1)
''',
    "_in_time": '''\
def _in_time(rows: list[Tensor], like: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The rows over time; an empty sequence for none."""
    return torch.stack(rows, 1) if rows else like.new_zeros(like.shape[0], 0, *axes)
''',
    "_row": '''\
def _row(rows: list[Tensor], lag: int, like: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The row `lag` steps back; 0 before the first."""
    return rows[-lag] if len(rows) >= lag else like.new_zeros(like.shape[0], *axes)
''',
}
