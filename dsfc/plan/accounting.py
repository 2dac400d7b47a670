"""Accounting: every term of a System stands in its plan.

The chain of a block owes one charge for its diagonal, one for each other term and one for each
drive. The nodes of a plan pay with what they hold: a decay, a low-rank part, a transition, drives.
What is owed and what is paid are read off the two values independently, so a planner that overlooks
a term is told apart from a System that has none.

`entries` says which states a node runs and what it pays for them; a new kind of node is a case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from dsfc.expr.build import ONE, add, is_zero, mul, walk
from dsfc.expr.inline import Inliner
from dsfc.expr.normal import normalise
from dsfc.expr.tree import Add, Expr, Mul, Num, Reduce, Ref, Rename
from dsfc.plan.flow import PlanError
from dsfc.plan.ir import Kernel, Plan
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan
from dsfc.structure.attention import is_attention
from dsfc.system.inline import inliner_of
from dsfc.system.ir import Block, Cache, Direction, Drive, Ratio, ReadOut, System, Term
from dsfc.system.traverse import expressions, parts, terms


class Kind(Enum):
    """Names a part of a chain in messages."""

    DIAGONAL = "diagonal"
    ZERO = "diagonal of 0"
    LOW_RANK = "low-rank part"
    MATRIX = "linear map"
    FOREIGN = "term of state"
    DRIVE = "drive"


@dataclass(frozen=True, slots=True)
class Charge:
    """One part of the update of a state.

    Attributes:
        kind: what it is.
        source: the other state that a FOREIGN term reads; None for all others.
    """

    kind: Kind
    source: str | None = None

    def __str__(self) -> str:
        """Says what is owed."""
        return self.kind.value if self.source is None else f"{self.kind.value} {self.source}"


@dataclass(frozen=True, slots=True)
class Entry:
    """The payment of one node of a plan for one state that it runs.

    Attributes:
        state: the state.
        befores: for each read that the node gives, whether it is of the state before its update.
        paid: the charges that it pays, each as often as it stands there.
        whole: kinds that it pays for however often they are owed: a full matrix is any number of
            linear terms.
    """

    state: str
    befores: frozenset[bool]
    paid: Counter[Charge]
    whole: frozenset[Kind] = frozenset()


def entries(kernel: Kernel) -> Iterator[Entry]:
    """Yields what a node of a plan pays, for each state that it runs."""
    if isinstance(kernel, Recurrence):
        yield from _stepped(kernel)
        return
    if not isinstance(kernel, Scan):
        return
    paid = Counter([Charge(Kind.DRIVE)])
    whole: set[Kind] = set()
    if kernel.decay is not None:
        paid[Charge(Kind.DIAGONAL)] += 1
    if kernel.low_rank is not None or kernel.delta is not None:
        paid[Charge(Kind.LOW_RANK)] += 1
    if kernel.transition is not None:
        whole |= {Kind.DIAGONAL, Kind.ZERO, Kind.LOW_RANK, Kind.MATRIX}
        if kernel.key is None:
            whole.add(Kind.DRIVE)  # its value is what the chain makes of all the drives
    for c in kernel.columns:
        yield Entry(c.state, frozenset({kernel.before}), paid, frozenset(whole))


def _stepped(kernel: Recurrence) -> Iterator[Entry]:
    """The entries of a recurrence: the summands of its levels, by the state that each reads.

    A sum writes two equal summands as twice one of them, so that one with a whole number pays
    for any number of its kind.
    """
    home = {s.before: s.state for s in kernel.states}
    paid: dict[str, Counter[Charge]] = {s.state: Counter() for s in kernel.states}
    several: dict[str, set[Kind]] = {s.state: set() for s in kernel.states}
    order = [s.state for s in kernel.states]
    for level in kernel.levels:
        for state, a in zip(order, level, strict=True):
            before = paid[state][Charge(Kind.DIAGONAL)]
            for e in _summands(a.value):
                charge = _charge(e, state, home)
                paid[state][charge] += 1
                if isinstance(e, Mul) and any(map(_counts, e.args)):
                    several[state].add(charge.kind)
            if paid[state][Charge(Kind.DIAGONAL)] == before:
                paid[state][Charge(Kind.ZERO)] = 1
        home |= {a.name: state for state, a in zip(order, level, strict=True)}
    for s in kernel.states:
        names = {n for r in kernel.reads for n in _names(r.value)} & {s.before, s.after}
        befores = frozenset(n == s.before for n in names)
        yield Entry(s.state, befores, paid[s.state], frozenset(several[s.state]))


def _summands(value: Expr) -> tuple[Expr, ...]:
    args = value.args if isinstance(value, Add) else (value,)
    return tuple(e for e in args if not _is_nothing(e))


def _is_nothing(value: Expr) -> bool:
    """Whether a value is 0, on any axes."""
    return is_zero(value) or (isinstance(value, Mul) and any(map(is_zero, value.args)))


def _charge(summand: Expr, state: str, home: dict[str, str]) -> Charge:
    """What a summand of an update pays."""
    read = {home[n] for n in _names(summand) if n in home}
    if not read:
        return Charge(Kind.DRIVE)
    (source,) = read
    if source != state:
        return Charge(Kind.FOREIGN, source)
    if any(isinstance(e, Rename) for e in walk(summand)):
        return Charge(Kind.MATRIX)
    if any(isinstance(e, Reduce) for e in walk(summand)):
        return Charge(Kind.LOW_RANK)
    return Charge(Kind.DIAGONAL)


def _counts(factor: Expr) -> bool:
    """Whether a factor may be how often a summand stands in a sum."""
    return isinstance(factor, Num) and factor.value > 1 and factor.value.denominator == 1


def _names(value: Expr) -> set[str]:
    return {e.name for e in walk(value) if isinstance(e, Ref)}


def owed(block: Block, inliner: Inliner) -> Counter[Charge]:
    """Returns the charges of the chain of a block.

    Args:
        block: the block.
        inliner: of the System, to see that a diagonal is the number 1, which owes nothing.
    """
    out: Counter[Charge] = Counter()
    diagonal: Expr = ONE
    for factor in block.chain:
        plain: list[Expr] = []
        for t in factor.terms:
            charge = _charge_of(t, block.state)
            if charge is None:
                plain.append(mul(t.left, t.right))
            else:
                out[charge] += not is_idle(t)
        diagonal = mul(diagonal, add(*plain))
        out[Charge(Kind.DRIVE)] += sum(not is_idle(d) for d in factor.drives)
    if _is_nothing(diagonal):
        out[Charge(Kind.ZERO)] += 1
    elif normalise(inliner.of(diagonal)).constant != 1:
        out[Charge(Kind.DIAGONAL)] += 1
    return +out


def _charge_of(term: Term, state: str) -> Charge | None:
    """What a term of the chain of a state owes; None for a summand of the diagonal."""
    if term.source != state:
        return Charge(Kind.FOREIGN, term.source)
    if term.matrix is not None or term.after is not None:
        return Charge(Kind.MATRIX)
    return Charge(Kind.LOW_RANK) if term.over else None


def is_idle(part: Drive | Term) -> bool:
    """Whether a drive or term adds 0: it owes nothing, and a node that holds it pays nothing."""
    both = (part.key, part.stream) if isinstance(part, Drive) else (part.left, part.right)
    return _is_nothing(mul(*both))


def _idle(block: Block) -> Counter[Charge]:
    """What a node may pay for a block, or not, as it adds 0."""
    out = Counter({Charge(Kind.DRIVE): sum(is_idle(d) for f in block.chain for d in f.drives)})
    for t in (t for f in block.chain for t in f.terms if is_idle(t)):
        charge = _charge_of(t, block.state)
        if charge is not None:
            out[charge] += 1
    return out


def settle(plan: Plan, system: System) -> None:
    """Checks that the nodes of a plan pay what the chains of its System owe, and for every read.

    Raises:
        PlanError: naming the state and what of it is not in the plan, or is there without being in
            the System.
    """
    inliner = inliner_of(system)
    blocks = {b.state: b for b in system.blocks}
    backward = {b.state: s.direction is Direction.BACKWARD for s in system.stages for b in s.blocks}
    befores: dict[str, set[bool]] = {}
    for entry in (e for k in plan.kernels for e in entries(k)):
        if entry.state not in blocks:
            raise PlanError(f"{entry.state} is not a state of the system")
        run = blocks[entry.state]
        _settle(entry, owed(run, inliner), _idle(run))
        befores.setdefault(entry.state, set()).update(entry.befores)
    for s in plan.states:
        block = blocks.get(s.name)
        if block is None or (s.axes, s.field) != (block.axes, block.field):
            raise PlanError(f"state {s.name} is not as in the system")
        if s.backward != backward[s.name]:
            raise PlanError(f"state {s.name} runs the other way in the system")
    least, most = _Reached(system, inliner), _Reached(system, None)
    _check_reads(befores, least, most)
    _check_sums(plan, least)


def _check_sums(plan: Plan, least: _Reached) -> None:
    """Checks that each sum without a finite state is run: in an attention, or over all pairs."""
    attentions = set(filter(is_attention, least.ratios))
    if len(attentions) > sum(isinstance(k, Attention) for k in plan.kernels):
        raise PlanError("softmax attention is not in the plan")
    whole = {c for r in attentions for c in (r.num, r.den)}
    due = Counter(
        (c.past.relation, c.past.lag, c.past.axes, c.past.field)
        for c in set(least.caches)
        if c not in whole
    )
    fields = {b.name: b.field for b in plan.arrays}
    paid = Counter(
        (k.relation, k.offset, frozenset(k.axes), fields[k.output])
        for k in plan.kernels
        if isinstance(k, AllPairs)
    )
    if due - paid:
        raise PlanError("a sum without a finite state is not in the plan")


def _settle(entry: Entry, due: Counter[Charge], idle: Counter[Charge]) -> None:
    """Checks an entry against what is due; what is idle may be paid or not."""
    # A diagonal of 1 that was not seen to be 1 is a decay all the same.
    free = {*entry.whole, Kind.DIAGONAL}
    missing = [c for c in due - entry.paid if c.kind not in entry.whole]
    surplus = [c for c in entry.paid - due - idle if c.kind not in free]
    if missing:
        raise PlanError(f"state {entry.state}: {_listed(missing)} is not in the plan")
    if surplus:
        raise PlanError(f"state {entry.state}: {_listed(surplus)} is not in the system")


def _listed(charges: Iterable[Charge]) -> str:
    return ", ".join(sorted(map(str, charges)))


def _check_reads(befores: dict[str, set[bool]], least: _Reached, most: _Reached) -> None:
    """Checks that every read that the output needs is run, and no other."""
    for state in least.states:
        if state not in befores:
            raise PlanError(f"state {state} is read and is not in the plan")
    for state, ran in befores.items():
        needed, known = ({t.lag != 0 for t in r.reads if t.source == state} for r in (least, most))
        for before in sorted(needed - ran):
            raise PlanError(f"state {state}: its read {_when(before)} is not in the plan")
        for before in sorted(ran - known):
            raise PlanError(f"state {state}: its read {_when(before)} is not in the system")


def _when(before: bool) -> str:
    return "before its update" if before else "after its update"


class _Reached:
    """What the outputs of a System depend on.

    Attributes:
        states: the states.
        reads: terms of reads.
        ratios: ratios by sums without a finite state.
        caches: sums without a finite state.
    """

    def __init__(self, system: System, inliner: Inliner | None) -> None:
        """Follows names from the outputs.

        With an inliner, names in values that cancel when definitions are put in are not followed,
        nor those of terms and drives that add 0.
        """
        self.states: set[str] = set()
        self.reads: list[Term] = []
        self.ratios: list[Ratio] = []
        self.caches: list[Cache] = []
        self._inliner = inliner
        self._names: list[str] = []
        blocks = {b.state: b for b in system.blocks}
        streams = {s.name: s.value for s in system.streams}
        for o in system.outputs:
            self._tree(o.value)
        seen: set[str] = set()
        while self._names:
            name = self._names.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in blocks:
                self.states.add(name)
                for f in blocks[name].chain:
                    run = [t for t in f.terms if self._adds(t)]
                    self._expressions(e for t in run for e in (t.left, t.right))
                    self._expressions(mul(d.key, d.stream) for d in f.drives if self._adds(d))
                    self._names += [t.source for t in run]
            elif name in streams:
                value = streams[name]
                if isinstance(value, Expr):
                    self._expressions([value])
                else:
                    self._tree(value)

    def _tree(self, tree: ReadOut) -> None:
        every = list(terms(tree))
        adding = [t for t in every if self._adds(t)]
        self.reads += adding
        self._names += [t.source for t in adding]
        self.caches += [p for p in parts(tree) if isinstance(p, Cache)]
        self.ratios += [p for p in parts(tree) if isinstance(p, Ratio) and isinstance(p.den, Cache)]
        idle = Counter(e for t in every if not self._adds(t) for e in (t.left, t.right))
        self._expressions(Counter(expressions(tree)) - idle)

    def _adds(self, part: Drive | Term) -> bool:
        return self._inliner is None or not is_idle(part)

    def _expressions(self, values: Iterable[Expr]) -> None:
        for e in values:
            value = e if self._inliner is None else self._inliner.of(e)
            self._names += [r.name for r in walk(value) if isinstance(r, Ref)]
