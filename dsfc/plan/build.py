"""System + Structure → Plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TypeGuard

from dsfc.diagnostics.catalogue import Limit
from dsfc.diagnostics.catalogue import Unsupported as UnsupportedDiagnostic
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.build import ONE, ZERO, add, div, mul, neg, prim, sub, total
from dsfc.expr.text import text
from dsfc.expr.tree import Div, Expr, Field, Map, Mul, Now, Prim, Ref, Time
from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.plan import attention, dense, pairs, readings, recurrence, scans
from dsfc.plan.forms.table import FORMS
from dsfc.plan.graph import Graph
from dsfc.plan.ir import Kernel, Plan, Reference, Role, StateTensor
from dsfc.plan.modes import modes_of
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.readings import Reading, Unsupported
from dsfc.plan.real_parts import take_real_parts
from dsfc.plan.recurrence import StageRead
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan
from dsfc.source import NOWHERE
from dsfc.structure.attention import NotAttention
from dsfc.structure.bounds import ranges_of
from dsfc.structure.ir import ClassName, Structure
from dsfc.structure.render import bound_text
from dsfc.system.dependency_order import ordered, reached_from, stage_key
from dsfc.system.index_form import equations
from dsfc.system.inline import inliner_of
from dsfc.system.ir import (
    Block,
    Cache,
    Cast,
    ComplexPart,
    Direct,
    Direction,
    Gate,
    Guard,
    GuardKind,
    MapOut,
    MaxPlus,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Stage,
    Stream,
    Sum,
    SumOver,
    System,
    Term,
)
from dsfc.system.traverse import (
    arrays,
    names_in,
    stage_expressions,
    terms,
    trees,
    value_expressions,
)


def plan(system: System, structure: Structure, limits: Limits = DEFAULT_LIMITS) -> Plan:
    """Returns the kernel graph of a system.

    Args:
        system: the system.
        structure: what `classify` says of it.
        limits: bounds on the number of stages behind one another.

    Raises:
        DiagnosticError: E-UNSUPPORTED, where no skeleton of this version runs the system; E-LIMIT.
    """
    _check_limits(system, limits)
    try:
        return _Planner(system, structure).plan()
    except Unsupported as e:
        about = e.about or system.outputs[0]
        what = f"state `{about.state}`" if isinstance(about, Block) else f"`{about.name}`"
        span = about.span or NOWHERE
        problem = UnsupportedDiagnostic(span=span, what=f"{what}: {e.why}", hint=e.hint)
        raise DiagnosticError((problem,)) from e


_LARGE = 80.0
"""e^80 is a number in float32, of which e^88.7 is the largest; and so are its multiples."""


class _Planner:
    """The state of one planning run."""

    def __init__(self, system: System, structure: Structure) -> None:
        self.system = system
        self.structure = structure
        self.graph = Graph(system, self.stream)
        self.inline, self.ranges = inliner_of(system).of, ranges_of(system)
        self.blocks = {b.state: b for b in system.blocks}
        backwards = (s for s in system.stages if s.direction is Direction.BACKWARD)
        self.backward = frozenset(b.state for s in backwards for b in s.blocks)
        self.home = {b.state: s for s in system.stages for b in s.blocks}
        self.terms = tuple(_terms(ordered(system, reached_only=True)))
        self.stepped = self._stepped()
        self.depths = _Depths(system)
        self.groups = self._group()
        self.made: dict[object, Scan] = {}
        self.asked = self._asked()
        self.given: dict[StageRead, Expr] = {}

    def plan(self) -> Plan:
        system, graph = self.system, self.graph
        if system.abstracts:
            raise Unsupported(system.abstracts[0], "it is an abstract map")
        for t in system.inputs:
            if t.field is Field.COMPLEX:
                raise Unsupported(t, "it is complex")
        if not system.inputs:
            raise Unsupported(None, _NO_INPUT, "declare one, which need not be read: `input u : d`")
        (out,) = system.outputs
        name = graph.output(out.name, self.read_out(out.value), out.axes, out.provenance)
        if graph.arrays[name].field is Field.COMPLEX:
            raise Unsupported(None, "its output is complex")
        take_real_parts(graph)
        graph.forget_unread_copies()
        ran = tuple(k for k in graph.kernels if isinstance(k, Scan))
        walked = tuple(k for k in graph.kernels if isinstance(k, Recurrence))
        weighed = tuple(k for k in graph.kernels if isinstance(k, Attention | AllPairs))
        registers = graph.registers()
        modes = modes_of((*ran, *walked, *weighed))
        states = tuple(
            StateTensor(b.state, b.axes, b.field, b.state in self.backward)
            for b in (self.blocks[name] for name in _unique_states((*ran, *walked)))
        )
        return Plan(
            name=system.name,
            doc=system.doc,
            axes=system.axes,
            inputs=system.inputs,
            params=system.params,
            buffers=system.buffers,
            arrays=tuple(graph.arrays.values()),
            kernels=tuple(graph.kernels),
            adjoints=tuple(FORMS[s.form].adjoint(s, graph.arrays) for s in ran),
            registers=registers,
            states=states,
            output=name,
            result=out.name,
            gauge="; ".join((*_gauges(system), *attention.gauges(registers))),
            modes=modes,
            reference=tuple(
                Reference(d.name, d.value, d.axes, d.field, d.update, d.maximum)
                for d in system.definition
            ),
            system=equations(system),
            structure=_structure(self.structure),
            provenance=tuple(_provenance(system)),
        )

    def stream(self, stream: Stream) -> Expr:
        """Returns a stream's value over buffers."""
        assert not isinstance(stream.value, MaxPlus)  # the graph plans it itself
        if isinstance(stream.value, Expr):
            return self.graph.lower(stream.value)
        try:
            return self.read_out(stream.value)
        except Unsupported as e:
            raise Unsupported(e.about or stream, e.why, e.hint) from e

    def read_out(self, out: ReadOut) -> Expr:
        """Returns a read-out as an expression over buffers, its scans planned."""
        match out:
            case Read(terms, direct):
                parts = [self.term(t) for t in terms]
                if direct is not None:
                    parts.append(self.graph.lower(direct))
                return add(*parts)
            case Direct(value):
                return self.graph.lower(value)
            case Gate(factor, arg):
                return _scaled(self.graph.lower(factor), self.read_out(arg))
            case Product(args):
                return mul(*map(self.read_out, args))
            case Ratio(num, den, guard):
                try:
                    return attention.read(self.graph, out)
                except NotAttention as e:
                    self.graph.unlike_attention.update(dict.fromkeys((num, den), str(e)))
                return self.ratio(self.read_out(num), self.read_out(den), guard)
            case Cast(part, arg):
                return prim("re" if part is ComplexPart.RE else "im", self.read_out(arg))
            case Sum(args):
                return add(*map(self.read_out, args))
            case MapOut(linear, arg):
                return Map(linear, self.read_out(arg))
            case Post(name, args, axis):
                return prim(name, *map(self.read_out, args), axis=axis)
            case SumOver(axis, arg):
                return total((axis,), self.read_out(arg))
            case MaxPlus():
                raise Unsupported(None, "a running maximum stands inside a read-out")
            case Cache():
                return pairs.build(self.graph, out)

    def ratio(self, above: Expr, below: Expr, guard: Guard) -> Expr:
        """Returns a guarded ratio over buffers.

        A guard e^x without a bound overflows where the ratio is merely small, and its gradient is
        0 · ∞ there. Numerator, denominator and guard are divided by e^R, R = max(x, 0): it cancels,
        so that R is a constant for gradients.
        """
        if guard.constant is None:
            return div(above, below)
        factors = guard.constant.args if isinstance(guard.constant, Mul) else (guard.constant,)
        powers = [f for f in factors if isinstance(f, Prim) and f.name == "exp"]
        exponent = add(*(f.args[0] for f in powers))
        if powers and self.ranges.of(self.inline(exponent)).high > _LARGE:
            scale = self.named("scale", prim("stop_gradient", prim("max", exponent, ZERO)))
            rest = (self.graph.lower(f) for f in factors if f not in powers)
            least = mul(*rest, prim("exp", sub(self.graph.lower(exponent), scale)))
            above, below = (mul(prim("exp", neg(scale)), e) for e in (above, below))
        else:
            least = self.graph.lower(guard.constant)
        if guard.kind is GuardKind.MAX_ABS:
            return div(above, prim("max", prim("abs", below), least))
        return div(above, add(below, least))

    def named(self, name: str, value: Expr) -> Expr:
        """Plans a value as a buffer of its own, and returns what reads the buffer."""
        b = self.graph.arrays[self.graph.define(name, value)]
        constant = b.role is Role.CONSTANT
        time, at = (Time.CONST, None) if constant else (Time.TOKEN, Now(0))
        return Ref(b.name, frozenset(b.axes), b.field, time, at)

    def term(self, term: Term) -> Expr:
        """Returns left · (output of the scan or recurrence that gives this read)."""
        if self.home[term.source] in self.stepped:
            return self._stepped_term(term)
        r = self._reading(self.graph, term)
        group = self.groups[r.signature, r.block.state]
        if group not in self.made:
            self.made[group] = scans.build(self.graph, _scan_name(group, self.made), group)
        scan = self.made[group]
        column = scan.columns[[m.block.state for m in group].index(term.source)]
        out: Expr = scans.output_of(self.graph, column, r.signature.backward)
        if term.matrix is not None:
            out = Map(term.matrix, out)
        whole = total(r.summed, _scaled(self.graph.lower(r.inner), out))
        value = _scaled(self.graph.lower(r.left), whole)
        return value if term.after is None else Map(term.after, value)

    def _stepped_term(self, term: Term) -> Expr:
        """The same of a stage that no scan runs."""
        asked = StageRead.of(term)
        if asked not in self.given:
            stage = self.home[term.source]
            together = next(reads for reads in self.asked[stage] if asked in reads)
            states = "_".join(b.state for b in stage.blocks)
            name = _unused(states, {k.name for k in self.graph.kernels if _is_named(k)})
            why = self.stepped[stage]
            _, values = recurrence.build(self.graph, name, stage, together, why)
            self.given |= values
        value = _scaled(self.graph.lower(term.left), self.given[asked])
        return value if term.after is None else Map(term.after, value)

    def _stepped(self) -> dict[Stage, str]:
        """Stages that no scan runs, with the reason."""
        out: dict[Stage, str] = {}
        # What is planned to find out is planned again where it counts.
        scratch = Graph(self.system, self.stream)
        for term in self.terms:
            stage = self.home[term.source]
            if stage in out:
                continue
            if others := _reads_others(stage):
                out[stage] = f"{others} another state"
                continue
            try:
                self._reading(scratch, term)
            except Unsupported as e:
                out[stage] = f"`{term.source}`: {e.why}"
        return out

    def _asked(self) -> dict[Stage, list[tuple[StageRead, ...]]]:
        """What is asked of each stage that is stepped, in groups that one kernel gives.

        A read whose vector depends on another read of the stage comes after it, by itself.
        """
        out: dict[Stage, list[tuple[StageRead, ...]]] = {}
        for stage in self.stepped:
            terms = [t for t in self.terms if self.home[t.source] is stage]
            reads = dict.fromkeys(map(StageRead.of, terms))
            alone = [r for r in reads if self._depends(r.term.right, stage)]
            together = tuple(r for r in reads if r not in alone)
            out[stage] = [*([together] if together else []), *((r,) for r in alone)]
        return out

    def _depends(self, value: Expr, stage: Stage) -> bool:
        return stage_key(stage) in reached_from(self.system, names_in((value,)))

    def _reading(self, graph: Graph, term: Term) -> Reading:
        name = term.source
        divided = any(name in (*r.numerators, *r.denominators) for r in self.structure.ratios)
        block, structure = self.blocks[name], self.structure.block(name)
        backward = name in self.backward
        if structure.name is ClassName.DENSE:
            return dense.reading(graph, term, block, divided, backward)
        return readings.reading(term, block, structure, divided, backward, graph.maxima)

    def _group(self) -> dict[tuple[readings.Signature, str], tuple[Reading, ...]]:
        """Readings with one signature share a scan where as many scans stand before each.

        Then no scan feeds another one of its group, nor a group one that feeds it.
        """
        by_signature: dict[object, list[Reading]] = {}
        for term in self.terms:
            stage = self.home[term.source]
            if stage in self.stepped:
                continue
            r = self._reading(self.graph, term)
            block = r.block
            shared = FORMS[r.signature.form].shares
            behind = self.depths.of_read(stage, r.signature.read)
            key = (r.signature, behind) if shared else (r.signature, block.state)
            members = by_signature.setdefault(key, [])
            if all(m.block is not block for m in members):
                members.append(r)
        out: dict[tuple[readings.Signature, str], tuple[Reading, ...]] = {}
        for members in by_signature.values():
            # A column of one channel behind the others leaves the rows of those aligned.
            together = tuple(sorted(members, key=lambda m: not m.channels))
            for m in together:
                out[m.signature, m.block.state] = together
        return out


_NO_INPUT = "it declares no input, so nothing says how many sequences and tokens there are"
"""Why a mixer without an input has no plan, as a clause."""


def _check_limits(system: System, limits: Limits) -> None:
    longest = max(_Depths(system).stages.values(), default=0)
    excesses = [
        (longest, "stages behind one another", limits.cascade, b.span) for b in system.blocks
    ]
    excesses += [
        (len(axes), "axes of one array", limits.axes, span) for axes, span in arrays(system)
    ]
    for size, what, most, span in excesses:
        if size > most:
            problem = Limit(
                span or NOWHERE, what=f"number of {what}", size=str(size), bound=str(most)
            )
            raise DiagnosticError((problem,))


class _Depths:
    """How many stages and reads stand behind one another, at most, in what a value depends on.

    Attributes:
        stages: for each stage of the system, itself counted.
    """

    def __init__(self, system: System) -> None:
        """Counts them once, of all streams and stages in the order of their dependency."""
        home = {b.state: s for s in system.stages for b in s.blocks}
        self._names: dict[str, int] = {}
        self._stages: dict[Stage, int] = {}
        for s in ordered(system).streams:
            tree = () if isinstance(s.value, Expr) else terms(s.value)
            behind = (self.of_read(home[t.source], t.right) for t in tree)
            self._names[s.name] = max(self._of(value_expressions(s.value)), *behind, 0)
        self.stages = {s: self._of_stage(s) for s in system.stages}

    def of_read(self, stage: Stage, vector: Expr) -> int:
        """Returns the depth of a read of a stage, itself counted."""
        return max(self._of_stage(stage), 1 + self._of((vector,)))

    def _of_stage(self, stage: Stage) -> int:
        if stage not in self._stages:
            self._stages[stage] = 1 + self._of(stage_expressions(stage))
        return self._stages[stage]

    def _of(self, values: Iterable[Expr]) -> int:
        return max((self._names.get(n, 0) for n in names_in(values)), default=0)


def _terms(system: System) -> Iterator[Term]:
    return (t for tree in trees(system) for t in terms(tree))


def _scaled(factor: Expr, value: Expr) -> Expr:
    """Factor · value, with (1 / x) · value written value / x."""
    if isinstance(factor, Div) and factor.num is ONE:
        return div(value, factor.den)
    return mul(factor, value)


def _scan_name(group: tuple[Reading, ...], scans_made: dict[object, Scan]) -> str:
    name = "_".join(dict.fromkeys(r.block.state for r in group))
    return _unused(name, {s.name for s in scans_made.values()})


def _unused(name: str, taken: Collection[str]) -> str:
    out, count = name, 2
    while out in taken:
        out, count = f"{name}_{count}", count + 1
    return out


def _is_named(kernel: Kernel) -> TypeGuard[Scan | Recurrence]:
    return isinstance(kernel, Scan | Recurrence)


def _unique_states(ran: Iterable[Scan | Recurrence]) -> Iterator[str]:
    """Names of the states that are run, each once."""
    columns = (c.state for k in ran if isinstance(k, Scan) for c in k.columns)
    stepped = (s.state for k in ran if isinstance(k, Recurrence) for s in k.states)
    yield from dict.fromkeys((*columns, *stepped))


def _reads_others(stage: Stage) -> str | None:
    """Which states of a stage read another one, as the start of a clause; None for none."""
    readers = [
        f"`{b.state}`"
        for b in stage.blocks
        if any(t.source != b.state for f in b.chain for t in f.terms)
    ]
    if not readers:
        return None
    return f"{' and '.join(readers)} {'reads' if len(readers) == 1 else 'read'}"


def _gauges(system: System) -> Iterator[str]:
    for kind in dict.fromkeys(b.gauge.kind.value for b in system.blocks):
        states = ", ".join(b.state for b in system.blocks if b.gauge.kind.value == kind)
        yield f"{states}: {kind}"


def _structure(structure: Structure) -> str:
    """Class, cell and proved bound of each block, a line each."""
    lines = [f"class {structure.title}"]
    lines += [
        f"state: key and value of every token so far, {text(a.kept)} numbers each"
        for a in structure.attentions
    ]
    for b in structure.blocks:
        lines.append(f"{b.state}: {b.label}, axes {b.axes_text}, |Λ| {bound_text(b.bound)}")
    return "\n".join(lines) + "\n"


def _provenance(system: System) -> Iterator[str]:
    named = [(s.name, s.provenance) for s in system.streams]
    named += [(b.state, b.provenance) for b in system.blocks]
    named += [(o.name, o.provenance) for o in system.outputs]
    for name, source in named:
        if source is not None:
            yield f"{name}: {source.text}"
