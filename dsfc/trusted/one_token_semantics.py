"""One system at one token: state entries, their update and the outputs as quotients.

Inputs are free generators of their token, parameters of none; token-wise definitions are expanded
into them. What is read before the first token is 0, as the language says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from itertools import islice

from dsfc.expr.build import walk
from dsfc.expr.declarations import MapTensor
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.tree import Abstract, Axis, Expr, Field, LinearMap, Now, Num, Pow, Prim, Ref
from dsfc.system.ir import (
    Block,
    Cache,
    Cast,
    ComplexPart,
    Direct,
    Factor,
    Gate,
    GuardKind,
    MapOut,
    MaxPlus,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Stream,
    Sum,
    SumOver,
    Term,
)
from dsfc.trusted.claim import Claim
from dsfc.trusted.comparable import array_names, nonneg, positive, units
from dsfc.trusted.defined import TOTAL, Defined, partial_functions
from dsfc.trusted.entries import Entries, Index, Obstacle
from dsfc.trusted.exponents import Exponentials, has_exponentials, has_states
from dsfc.trusted.generalize_inputs import maxima, system_of
from dsfc.trusted.generator_names import LONGEST_LAG, STATE
from dsfc.trusted.polynomial import ONE, ZERO, Quotient, number, total
from dsfc.trusted.read_out_field import read_out_field
from dsfc.trusted.substitute_parameters import literals
from dsfc.trusted.symbols import GeneratorIndices, Symbols

NO_VALUES: Mapping[str, Quotient] = {}
"""Nothing is put in the place of a parameter."""

CELL_LIMIT = 64
"""Entries of states that are written out."""


class OneTokenSemantics(Entries[Quotient]):
    """One system at one token; state entries before the token are generators, or 0 at the first."""

    def __init__(
        self,
        claim: Claim,
        second: bool,
        symbols: Symbols,
        entries: bool,
        token: int | None,
        held: bool = False,
        values: Mapping[str, Quotient] = NO_VALUES,
        defined: Defined | None = None,
        expanded: frozenset[str] = frozenset(),
    ) -> None:
        """Starts with nothing written out; see `dsfc.trusted.statement.written`.

        Entries of states are generators before the first token too if they are to be `held`: then
        a function of them is one there as well. Entries of parameters that have one of the `values`
        have it in their place, and maps that are `expanded` are written out in their entries.
        """
        super().__init__(dict(claim.sizes))
        self.system = system_of(claim, second)
        self.label = "B" if second else "A"
        self.names = array_names(claim, second)
        self.maxima = maxima(claim, second)
        self.symbols = symbols
        self.written_out = entries
        self.token = token
        self.held, self.given = held, values
        self._expanded = expanded | {name.partition("[")[0] for name in values}
        self.second, self.defined, self._updating = second, defined, False
        self.literals = literals(claim, second)
        self.lag, self._adding = 0, has_exponentials(self.system)
        self.inputs = {t.name: t for t in self.system.inputs}
        self.stored_as = {t.name: t for t in (*self.system.params, *self.system.buffers)}
        self.positive, self.units, self.nonneg = positive(claim), units(claim), nonneg(claim)
        self.streams = {s.name: s for s in self.system.streams}
        self.blocks = {b.state: b for b in self.system.blocks}
        self.fields = {b.state: b.field for b in self.system.blocks}
        if any(stage.direction < 0 for stage in self.system.stages):
            raise Obstacle("a state runs backwards in time")
        self._exponentials = Exponentials(symbols, self._added, self._kept)
        held_in = ((b, at) for b in self.system.blocks for at in self.places(b.axes))
        self._entries = {self._cell(*e): e for e in islice(held_in, CELL_LIMIT + 1)}
        if len(self._entries) > CELL_LIMIT:
            raise Obstacle(f"there are more than {CELL_LIMIT} entries of states")
        self._new: dict[str, Mapping[tuple[int, ...], Quotient]] = {}
        self._registers: dict[str, Callable[[], Quotient]] = {}
        self._opened, self._state_readers = set[str](), dict[str, bool]()

    def memo_key(self) -> object:
        """Returns the lag at which a definition is written out, and what it is written out for."""
        return self.lag, self._updating, self.defined is None

    # --- leaves -----------------------------------------------------------------------------------

    def number(self, value: Fraction) -> Quotient:
        """Returns a number."""
        return number(value)

    def size(self, axis: Axis) -> Quotient:
        """Returns the size of an axis: a symbol, so that nothing holds by accident of a size."""
        return self.symbols.leaf(f"size[{axis.copy_of or axis.name}]", real=True, positive=True)

    def parameter(self, name: str, axes: tuple[Axis, ...], at: tuple[int, ...]) -> Quotient:
        """Returns the generator of an entry of a parameter or buffer."""
        if name not in self.stored_as:
            raise ValueError(f"`{name}` is no parameter or buffer")
        entry = self._entry(name, axes, at, "")
        if name in self.literals:
            return number(self.literals[name])
        return self.given.get(entry.text, entry) if self.given else entry

    def _entry(self, name: str, axes: tuple[Axis, ...], at: tuple[int, ...], when: str) -> Quotient:
        same = self.names.get(name, name)
        declared = self.stored_as.get(name) or self.inputs[name]
        if isinstance(declared, MapTensor):
            m = declared.map
            stored, kind = (*m.each, *m.target, *m.source), m.field
        else:
            stored, kind = declared.axes, declared.field
        if axes != stored:
            raise ValueError(f"`{name}` is used with other axes than it is declared with")
        where = ",".join(map(str, at))
        positive = same in self.positive
        spelled = GeneratorIndices(tuple(zip((a.name for a in axes), at, strict=True)))
        real, unit, nonneg = kind is Field.REAL, same in self.units, same in self.nonneg
        return self.symbols.leaf(f"{same}[{where}]{when}", real, positive, spelled, unit, nonneg)

    def ref(self, ref: Ref, at: Index) -> Quotient:
        """Returns a value at a lag: 0 before the first token, registers where it reads states."""
        if ref.at is None:
            stream = self.streams[ref.name]
            if not stream.constant or not isinstance(stream.value, Expr):
                raise ValueError(f"`{ref.name}` is read without a time and has one")
            return self._defined(stream, at)
        if not isinstance(ref.at, Now):
            raise Obstacle("a sum over the past has no finite state")
        lag = self.lag + ref.at.lag
        if lag < 0:
            raise Obstacle(f"`{ref.name}` is read at a later token")
        if lag > LONGEST_LAG:
            raise Obstacle(f"`{ref.name}` is read {lag} tokens back, more than {LONGEST_LAG}")
        # Tokens are alike from the first that reads nothing before token 0 and is not `first`.
        reach = lag + (ref.name == FIRST)
        self.symbols.reach = max(self.symbols.reach, reach)
        if ref.name == FIRST:
            return ONE if self.token == lag else ZERO
        before = self.token is not None and lag > self.token
        if ref.name in self.inputs:
            # A running maximum starts from a number that is not 0: whatever it is.
            if before and ref.name not in self.maxima:
                return ZERO
            axes = self.inputs[ref.name].axes
            return self._entry(ref.name, axes, tuple(at[a] for a in axes), f"@{lag}")
        if ref.name not in self.streams:
            raise Obstacle(f"the state `{ref.name}` is read inside a definition")
        stream = self.streams[ref.name]
        if stream.constant:
            raise ValueError(f"`{ref.name}` has no time and is read at one")
        if not self._reads_states(stream):
            return ZERO if before else self._at(lag, lambda: self._defined(stream, at))
        return self._delayed(stream, {a: at[a] for a in stream.axes}, lag)

    def _at(self, lag: int, value: Callable[[], Quotient]) -> Quotient:
        before, self.lag = self.lag, lag
        try:
            return value()
        finally:
            self.lag = before

    def _defined(self, stream: Stream, at: Index) -> Quotient:
        here = {a: at[a] for a in stream.axes}
        if isinstance(stream.value, Expr):
            return self.value(stream.value, here)
        return self.read(stream.value, here)

    def _reads_states(self, stream: Stream) -> bool:
        known = self._state_readers
        if stream.name not in known:
            known[stream.name] = self._finds_states(stream)
        return known[stream.name]

    def _finds_states(self, stream: Stream) -> bool:
        if not isinstance(stream.value, Expr):
            return True
        read = (e.name for e in walk(stream.value) if isinstance(e, Ref))
        return any(self._reads_states(self.streams[n]) for n in read if n in self.streams)

    def _delayed(self, stream: Stream, at: dict[Axis, int], lag: int) -> Quotient:
        """A stream that reads states, some tokens ago: kept in registers."""
        if lag == 0:
            return self._at(0, lambda: self._defined(stream, at))
        where = ",".join(str(at[a]) for a in stream.axes)
        name = f"{STATE}{self.label}.{stream.name}.{lag}[{where}]"
        self._registers.setdefault(name, lambda: self._delayed(stream, at, lag - 1))
        return self._before(name, stream.field, _spelled(at, stream.axes))

    # --- where there are values -------------------------------------------------------------------

    def _value(self, e: Expr, at: Index) -> Quotient:
        if self.defined is not None:
            for head, argument in partial_functions(e, lambda x: self.value(x, at)):
                if self.second:
                    self.defined.check(head, argument, self._updating)
                else:
                    self.defined.note(head, argument, self._updating)
        match e:
            case Pow(base, exponent) if not _whole(exponent):
                operands = self.value(base, at), self.value(exponent, at)
                self.symbols.check_branch("pow", operands, e.field)
        return super()._value(e, at)

    # --- operations -------------------------------------------------------------------------------

    def primitive(self, e: Prim, args: tuple[Quotient, ...]) -> Quotient:
        """Returns a primitive by its law, or as an opaque generator."""
        return self.symbols.primitive(e.name, args, e.kind)

    def along(self, e: Prim, vector: tuple[Quotient, ...], at: int) -> Quotient:
        """Returns one entry of a primitive along an axis."""
        assert e.axis is not None
        return self.symbols.along(e.name, vector, at, e.axis.name)

    def power(self, base: Quotient, exponent: Quotient) -> Quotient:
        """Returns a power."""
        return self.symbols.power(base, exponent)

    def conjugate(self, value: Quotient) -> Quotient:
        """Returns the complex conjugate."""
        return self.symbols.conjugate(value)

    def largest(self, values: list[Quotient]) -> Quotient:
        """Returns the maximum: nothing is known of it but its arguments."""
        return self.symbols.opaque("largest", tuple(values), real=True, positive=False)

    def node(self, e: Expr, at: Index) -> Quotient:
        """Returns an entry of an abstract map."""
        if isinstance(e, Abstract):
            rest = {a: k for a, k in at.items() if a not in e.target}
            args = tuple(self.value(e.arg, {**rest, **s}) for s in self.places(e.source))
            where = ",".join(str(at[a]) for a in e.target)
            spelled = _spelled(at, e.target, e.source)
            return self.symbols.opaque(f"{e.name}<{where}>", args, True, False, spelled)
        return super().node(e, at)

    def mapped(self, map: LinearMap, arg: Expr, at: Index) -> Quotient:
        """Returns an entry of a linear map applied to a value: a generator unless written out."""
        expanded = self.names.get(map.name, map.name) in self._expanded
        if self.written_out or map.adjoint or expanded:
            return super().mapped(map, arg, at)
        rest = {a: k for a, k in at.items() if a not in map.target}
        args = tuple(self.value(arg, {**rest, **s}) for s in self.places(map.source))
        if any(STATE in name for q in args for name in q.names):
            return super().mapped(map, arg, at)
        if not any(args):
            return ZERO
        axes = (*map.each, *map.target, *map.source)
        self.parameter(map.name, axes, (0,) * len(axes))
        each, there = (",".join(str(at[a]) for a in axes) for axes in (map.each, map.target))
        head = f"{self.names.get(map.name, map.name)}[{each};{there}]"
        real = map.field is Field.REAL and all(self.symbols.is_real(q) for q in args)
        spelled = _spelled(at, (*map.each, *map.target), map.source)
        return self.symbols.opaque(head, args, real, False, spelled)

    # --- states -----------------------------------------------------------------------------------

    def _before(self, name: str, kind: Field, spelled: GeneratorIndices) -> Quotient:
        """An entry of a state before the token."""
        if self.token == 0 and not self.held:
            return ZERO
        return self.symbols.leaf(name, kind is Field.REAL, spelled=spelled)

    def _cell(self, block: Block, at: Index) -> str:
        where = ",".join(str(at[a]) for a in block.axes)
        return f"{STATE}{self.label}.{block.state}[{where}]"

    def _old(self, block: Block) -> dict[tuple[int, ...], Quotient]:
        return {
            tuple(at.values()): self._before(
                self._cell(block, at), block.field, _spelled(at, block.axes)
            )
            for at in self.places(block.axes)
        }

    def _stage(self, name: str) -> None:
        """Writes out the update of a stage."""
        with self._update():
            self._new.update(self._updated(name))

    def _updated(self, name: str) -> dict[str, dict[tuple[int, ...], Quotient]]:
        stage = next(s for s in self.system.stages if any(b.state == name for b in s.blocks))
        current = {b.state: self._old(b) for b in stage.blocks}
        for position in range(max(len(b.chain) for b in stage.blocks)):
            later = dict(current)
            for b in stage.blocks:
                if position < len(b.chain):
                    with self._noted(b.state == name):
                        later[b.state] = self._factor(b, b.chain[position], current)
            current = later
        return current

    @contextmanager
    def _noted(self, read: bool) -> Iterator[None]:
        """What is not read now leaves an output of a its value."""
        before = self.defined
        if not (self.second or read):
            self.defined = None
        try:
            yield
        finally:
            self.defined = before

    @contextmanager
    def _update(self) -> Iterator[None]:
        before, self._updating = self._updating, True
        try:
            yield
        finally:
            self._updating = before

    def _factor(
        self, block: Block, factor: Factor, current: Mapping[str, dict[tuple[int, ...], Quotient]]
    ) -> dict[tuple[int, ...], Quotient]:
        out = {}
        for at in self.places(block.axes):
            parts = [self._term(t, self._reader(t.source, current[t.source]), at)
                     for t in factor.terms]  # fmt: skip
            parts += [self.value(d.key, at) * self.value(d.stream, at) for d in factor.drives]
            out[tuple(at.values())] = total(parts)
        return out

    def _reader(
        self, state: str, values: Mapping[tuple[int, ...], Quotient]
    ) -> Callable[[Index], Quotient]:
        axes = self.blocks[state].axes
        return lambda at: values[tuple(at[a] for a in axes)]

    def _term(self, t: Term, read: Callable[[Index], Quotient], at: Index) -> Quotient:
        """One entry of after(left · Σ_over(right · matrix(state)))."""

        def inner(there: Index) -> Quotient:
            parts = []
            for over in self.places(tuple(sorted(t.over))):
                here = {**there, **over}
                value = self.applied(t.matrix, read, here) if t.matrix else read(here)
                parts.append(self.value(t.right, here) * value)
            return self.value(t.left, there) * total(parts)

        return self.applied(t.after, inner, at) if t.after else inner(at)

    def _state(self, name: str, lag: int) -> Callable[[Index], Quotient]:
        """The entries of a state after the token, or before it."""
        block = self.blocks[name]
        if lag == 1:
            return self._reader(name, self._old(block))
        if lag != 0:
            raise Obstacle(f"the state `{name}` is read with a lag of {lag}")
        if name not in self._new:
            self._stage(name)
        return self._reader(name, self._new[name])

    def step(self) -> dict[str, Quotient]:
        """State entry → its value after the token; conjugates of complex ones are entries too.

        What of a is not read by its output, of which the entries were asked before, it may lack.
        """
        if not self.second:
            self.defined = None
        out: dict[str, Quotient] = {}
        for block in self.system.blocks:
            if block.state not in self._new:
                self._stage(block.state)
            for at in self.places(block.axes):
                value = self._new[block.state][tuple(at.values())]
                self._keep(out, self._cell(block, at), value, block.field)
                out |= self._exponentials.after(self._cell(block, at)) if self._adding else {}
        kinds = {s.name: s.field for s in self.system.streams}
        while left := [name for name in self._registers if name not in out]:
            for name in left:
                stream = name.split(".")[1]
                with self._update():
                    self._keep(out, name, self._registers[name](), kinds[stream])
        return out

    def _added(self, cell: str) -> Quotient | None:
        """What the token adds to an entry of a state, None where it does not only add up."""
        block, at = self._entries.get(cell, (None, {}))
        if block is None or block.field is not Field.REAL or block.state in self._opened:
            return None
        if block.state not in self._new:
            self._opened.add(block.state)
            self._stage(block.state)
            self._opened.remove(block.state)
        place = tuple(at[a] for a in block.axes)
        added = self._new[block.state][place] - self._old(block)[place]
        return None if has_states(added) else added

    def _kept(self, cell: str, name: str) -> Quotient:
        block, at = self._entries[cell]
        return self._before(name, Field.REAL, _spelled(at, block.axes))

    def _keep(self, out: dict[str, Quotient], name: str, value: Quotient, kind: Field) -> None:
        out[name] = value
        if kind is Field.REAL and value - self.symbols.conjugate(value):
            raise Obstacle(f"`{name}` is declared real and takes complex values")
        if kind is Field.COMPLEX:
            out[f"~{name}"] = self.symbols.conjugate(value)

    # --- read-outs --------------------------------------------------------------------------------

    def outputs(self) -> list[Quotient]:
        """The entries of the output, the last axis running fastest."""
        out = self.system.outputs[0]
        return [self.read(out.value, at) for at in self.places(out.axes)]

    def read(self, r: ReadOut, at: Index) -> Quotient:
        """One entry of a read-out."""
        match r:
            case Read(terms, direct):
                parts = [self._term(t, self._state(t.source, t.lag), at) for t in terms]
                if direct is not None:
                    parts.append(self.value(direct, at))
                return total(parts)
            case Direct(value):
                return self.value(value, at)
            case Cache(why=why):
                raise Obstacle(f"a sum over the past has no finite state: {why}")
            case MaxPlus():
                raise Obstacle("a running maximum has a rule only where both have it in one text")
            case Gate(factor, arg):
                return self.value(factor, at) * self.read(arg, at)
            case Product(args):
                out = ONE
                for a in args:
                    out = out * self.read(a, at)
                return out
            case Sum(args):
                return total(self.read(a, at) for a in args)
            case Ratio(num, den):
                below, sign = self._guarded(r, self.read(den, at), at)
                if self.defined is not None and self.second:
                    self.symbols.divisors.append(sign)
                return self.read(num, at) / below
            case Cast(part, arg):
                name = "re" if part is ComplexPart.RE else "im"
                return self.symbols.primitive(name, (self.read(arg, at),), Field.REAL)
            case MapOut(by, arg):
                return self.applied(by, lambda there: self.read(arg, there), at)
            case SumOver(axis, arg):
                return total(self.read(arg, {**at, axis: k}) for k in range(self.sizes[axis.name]))
            case Post(name=name) if self.defined is not None and name not in TOTAL:
                raise Obstacle(f"`{name}` of states may leave b without a value")
            case Post("exp", (arg,), None) if self._adding:
                return self._exponentials.of(self.read(arg, at))
            case Post(name, args, None):
                values = tuple(self.read(a, at) for a in args)
                return self.symbols.primitive(name, values, read_out_field(r, self.fields))
            case Post(name, (arg,), axis) if axis is not None:
                vector = (self.read(arg, {**at, axis: k}) for k in range(self.sizes[axis.name]))
                return self.symbols.along(name, tuple(vector), at[axis], axis.name)
        raise ValueError("a read-out is malformed")

    def _guarded(self, r: Ratio, den: Quotient, at: Index) -> tuple[Quotient, Quotient]:
        """The divisor of a ratio, and a value: where that is positive, the divisor is."""
        if r.guard.kind is GuardKind.NONE or r.guard.constant is None:
            return den, den
        constant = self.value(r.guard.constant, at)
        if r.guard.kind is GuardKind.ADD:
            return den + constant, den + constant
        of = self.symbols.primitive
        larger = of("max", (of("abs", (den,), Field.REAL), constant), Field.REAL)
        return larger, constant if self.symbols.positive(constant) else larger


def _whole(exponent: Expr) -> bool:
    return isinstance(exponent, Num) and exponent.value.denominator == 1


def _spelled(at: Index, axes: tuple[Axis, ...], over: tuple[Axis, ...] = ()) -> GeneratorIndices:
    """The indices of a name along some axes, and the axes that its arguments run over."""
    return GeneratorIndices(tuple((a.name, at[a]) for a in axes), frozenset(a.name for a in over))
