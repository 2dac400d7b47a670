"""Prints a mixer's definitions as written, evaluated literally: the body of the reference.

Token-wise definitions are printed over `[B, L]`. A sum over time is printed over all pairs (i, j)
of tokens, masked. A state's update, with the definitions through which it reads its own past, runs
in a loop over time; states that read each other share one. Nothing here knows the derived system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TypeVar

from dsfc.expr.build import walk
from dsfc.expr.graph import components
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.tree import Axis, Expr, Field, Fir, Now, Ref
from dsfc.plan.ir import Plan, Reference

from .code import Code, filtered
from .layout import assign, tuple_text
from .nodes import Printer
from .sums import BETWEEN, Sums, Surroundings

ExprT = TypeVar("ExprT", bound=Expr)


class Definitions:
    """The statements of the reference function, and which helper functions they call.

    Attributes:
        lines: statements, indented by four blanks.
        result: variable that holds the output.
        helpers: names of `HELPERS` they call.
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
        self._numbers: set[str] = set()
        self.helpers: set[str] = set()
        self._axes = {t.name: t.axes for t in plan.inputs}
        self._axes |= {r.name: r.axes for r in plan.reference}
        self._const = {r.name for r in plan.reference if r.value.time == 0 and not r.update}
        self._maxima = frozenset(r.name for r in plan.reference if r.maximum)
        around = Surroundings(
            self._at_token,
            self._filter,
            self._names,
            like,
            self._unused,
            self._fresh,
            self.helpers,
        )
        self._sums = Sums(around)
        self._result = plan.result
        body: list[str] = []
        parts = list(_parts(plan.reference))
        read = {plan.result}
        after: list[set[str]] = []
        for part in reversed(parts):
            after.append(set(read) if any(r.update for r in part) else set())
            read |= {e.name for r in part for e in _refs(r)}
        for part, later in zip(parts, reversed(after), strict=True):
            recurrent = any(r.update for r in part)
            body += self._loop(part, later) if recurrent else self._token(*part)
        self.lines = [*self._sums.prologue(), *body]
        self.result = names(plan.result)

    # --- over [B, L] -----------------------------------------------------------------------------

    def _token(self, r: Reference) -> list[str]:
        printer = Printer(
            self._at_token, self._names, self._like, self._sums.at_token, self._filter
        )
        lines = assign(self._ident(r.name), r.value, printer, self._fresh, wrap=self._full(r))
        return [*self._sums.pending(), *lines]

    def _full(self, r: Reference) -> Callable[[Code], str]:
        """Gives a value the axes of its definition, and that of an update the batch.

        A result that is the same at every token stands at each of them.
        """

        def wrap(code: Code) -> str:
            if r.name == self._result and not r.update and not code.lead:
                shape = ", ".join([f"*{self._like}.shape[:2]", *self._sizes(r.axes)])
                if code.number:
                    return f"{self._like}.new_full(({shape},), {code.text})"
                return f"{code.aligned(r.axes, False)}.expand({shape})"
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
            helper = "_delay" if ref.at.lag > 0 else "_ahead"
            if ref.name in self._maxima:
                helper = "_before"
            self.helpers.add(helper)
            return Code(f"{helper}({code.text}, {abs(ref.at.lag)})", code.axes, True)
        return code

    def _named(self, ref: Ref) -> Code:
        if ref.name == FIRST:
            self.helpers.add("_first")
            return Code(f"_first({self._like})", (), True)
        axes = tuple(sorted(ref.over))
        number = ref.name in self._numbers
        return Code(self._ident(ref.name), axes, ref.at is not None, number=number)

    def _filter(self, fir: Fir) -> Code:
        printer = Printer(self._at_token, self._names, self._like)
        self.helpers |= {"_filtered", "_delay"}
        return filtered("_filtered", fir, printer.print(fir.arg), printer.print(fir.weight))

    # --- one loop over time ----------------------------------------------------------------------

    def _loop(self, members: list[Reference], later: set[str]) -> list[str]:
        """A loop over time; a state's variable holds its previous value.

        A state that reads its next value runs from the last token to the first, and its previous
        value is that.

        Filters and sums over time inside of it read what stands outside, and are computed first.

        Args:
            members: definitions of the loop.
            later: names that are read behind it.
        """
        first: list[str] = []

        def before(make: Callable[[ExprT], Code]) -> Callable[[ExprT], Code]:
            def printed(expr: ExprT) -> Code:
                code = make(expr)
                name = self._fresh("whole")
                first.extend([*self._sums.pending(), f"    {name} = {code.text}"])
                return Code(f"{name}[:, i]", code.axes, True)

            return cache(printed)

        updates = {r.name for r in members if r.update}
        lags = {(e.name, e.at.lag) for r in members for e in _refs(r) if isinstance(e.at, Now)}
        names = {r.name for r in members}
        back = any(lag < 0 for name, lag in lags if name in names)
        listed = later | {name for name, lag in lags if abs(lag) > (name in updates)}
        rows = {
            r.name: self._unused(f"{self._ident(r.name)}_rows") for r in members if r.name in listed
        }
        now = {r.name: self._unused(f"{self._ident(r.name)}_i") for r in members}
        lines = []
        for r in members:
            if r.update:
                sizes = ", ".join([f"{self._like}.shape[0]", *self._sizes(r.axes)])
                start = f"new_zeros({sizes})"
                if r.maximum:
                    start = f"new_full(({sizes}{',' if not r.axes else ''}), LOWEST)"
                lines.append(f"    {self._ident(r.name)} = {self._alike(r.field)}.{start}")
            if r.name in rows:
                lines.append(f"    {rows[r.name]} = []")
        times = f"range({self._like}.shape[1])"
        lines.append(f"    for i in {f'reversed({times})' if back else times}:")
        for r in members:
            printer = Printer(
                self._at_step(now, rows, updates),
                self._names,
                self._like,
                before(self._sums.at_token),
                before(self._filter),
            )
            lines += assign(now[r.name], r.value, printer, self._fresh, "        ", self._full(r))
        for r in members:
            if r.name in rows:
                lines.append(f"        {rows[r.name]}.append({now[r.name]})")
            if r.update:
                lines.append(f"        {self._ident(r.name)} = {now[r.name]}")
        self.helpers.add("_in_time")
        for r in (r for r in members if r.name in later):
            row, shape = rows[r.name], self._shape(r.axes)
            like = self._alike(r.field)
            row = f"{row}[::-1]" if back else row
            lines.append(f"    {self._ident(r.name)} = _in_time({row}, {like}, {shape})")
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
            lag = abs(r.at.lag)
            if lag == 1 and r.name in updates:
                return Code(self._ident(r.name), axes, True)
            self.helpers.add("_row")
            like = self._alike(r.field)
            text = f"_row({rows[r.name]}, {lag}, {like}, {self._shape(axes)})"
            return Code(text, axes, True)

        return ref

    def _alike(self, field: Field) -> str:
        """A tensor of a field, for its batch, length and device."""
        return f"{self._like}.to(torch.complex128)" if field is Field.COMPLEX else self._like

    def _sizes(self, axes: tuple[Axis, ...]) -> list[str]:
        return [self._names[a.name] for a in axes]

    def _shape(self, axes: tuple[Axis, ...]) -> str:
        return tuple_text(self._sizes(axes))

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


def _refs(definition: Reference) -> list[Ref]:
    """All that a definition reads by name."""
    return [e for e in walk(definition.value) if isinstance(e, Ref)]


def _parts(references: Iterable[Reference]) -> Iterator[list[Reference]]:
    """Definitions that read each other, each after those that it reads at the same token."""
    items = {r.name: r for r in references}
    reads = {n: _refs(r) for n, r in items.items()}
    for part in components({n: sorted({e.name for e in refs}) for n, refs in reads.items()}):
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
    "_before": '''\
def _before(x: Tensor, lag: int) -> Tensor:
    """A running maximum `lag` tokens earlier; below all numbers before the first."""
    return F.pad(x, (0, 0) * (x.ndim - 2) + (lag, 0), value=LOWEST)[:, : x.shape[1]]
''',
    "_ahead": '''\
def _ahead(x: Tensor, lag: int) -> Tensor:
    """The values `lag` tokens later; 0 behind the last."""
    return F.pad(x, (0, 0) * (x.ndim - 2) + (0, lag))[:, lag:]
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
    "_between": BETWEEN,
    "_row": '''\
def _row(rows: list[Tensor], lag: int, like: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The row `lag` steps back; 0 before the first."""
    return rows[-lag] if len(rows) >= lag else like.new_zeros(like.shape[0], *axes)
''',
}
