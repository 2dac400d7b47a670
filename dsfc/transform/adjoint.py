"""The adjoint of a System: its gradient, as a System.

Forward quantities are computed again by the forward streams and stages; then every stage is
reversed (`dsfc.transform.stage_adjoint`), every token-wise expression is differentiated from the
primitive table (`dsfc.expr.derivative`), and a cotangent read at another token is a stream
read at another token. Nothing here knows a mixer.

    inputs    the System's, and for each output its cotangent `<output>_bar`
    outputs   `<input>_bar` per token; `<parameter>_bar`, summed over time; `<state>_initial_bar`
              of each state, from the reversed state's last value
    states    each reversed state g: its initial value is the gradient of the forward state's final
              value, its final value the gradient of the forward state's initial value (of
              sequences without tokens too)

Complex values follow PyTorch: the gradient of a real loss L is ∂L/∂re + i ∂L/∂im.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dsfc.expr.adjoints import conj, real
from dsfc.expr.build import ONE, add, mul, ones, prim, sub, total
from dsfc.expr.declarations import Constraint, Dimension, MapTensor, Tensor
from dsfc.expr.derivative import (
    FilterGradient,
    Gradients,
    MapGradient,
    filter_argument,
    filter_weight,
    pull,
)
from dsfc.expr.graph import reachable
from dsfc.expr.over_time import Past
from dsfc.expr.reserved_names import FIRST, first
from dsfc.expr.tree import Axis, Expr, Field, LinearMap, Now, Ref, Rename, Size, Time
from dsfc.system.dependency_order import home_of, needs_of, stage_key
from dsfc.system.ir import (
    Block,
    Cache,
    Cast,
    ComplexPart,
    Direct,
    Direction,
    Drive,
    Factor,
    Gate,
    MaxPlus,
    Output,
    Read,
    ReadOut,
    Stage,
    Step,
    Stream,
    System,
    Term,
)
from dsfc.transform.flatten import Flat, Node, flatten
from dsfc.transform.past_adjoint import pull_past
from dsfc.transform.record import Record
from dsfc.transform.stage_adjoint import (
    Gradient,
    Role,
    StageAdjoint,
    StageGradients,
    StageReverser,
    StateValue,
    adjoint_stage,
)
from dsfc.transform.terms import Names

__all__ = [
    "Gradient",
    "Role",
    "StageAdjoint",
    "StateValue",
    "adjoint",
    "adjoint_stage",
]


def adjoint(system: System, wrt: Iterable[str] | None = None) -> tuple[System, Record]:
    """Returns the gradient of a System as a System.

    Args:
        system: the System; its outputs are per token.
        wrt: inputs, parameters and states whose gradients are wanted; None for all.

    Returns:
        The adjoint, and a record whose names map each output to its cotangent input, each wanted
        input and parameter to its gradient output, and each state to its reversed state.

    Raises:
        ValueError: an output is summed over time, or a sum over the past that is kept whole holds
            a running product.
        TypeError: an expression has no derivative (an uninterpreted map, a filter in a sum).
    """
    return _Adjoint(system, None if wrt is None else frozenset(wrt)).build()


class _Adjoint:
    def __init__(self, system: System, wrt: frozenset[str] | None) -> None:
        self.system = system
        self.wrt = wrt
        self.names = Names.of(system)
        self.flat: Flat = flatten(system, self.names)
        self.cotangents: dict[str, list[Expr]] = {}
        self.params: dict[str, list[Expr]] = {}
        self.matrices: dict[str, list[MapGradient]] = {}
        self.reversers: dict[str, StageReverser] = {}
        self.streams: list[Stream] = []
        self.stages: list[Stage] = []
        self.axes: list[Dimension] = list(system.axes)
        self.following: Ref | None = None
        self.renamed: list[tuple[str, str]] = []
        self.steps: list[Step] = []
        self.nodes = {n.name: n for n in self.flat.nodes}
        self.home = {b.state: s for s in system.stages for b in s.blocks}

    def build(self) -> tuple[System, Record]:
        inputs = [self._seed(o, value) for o, value in self.flat.outputs]
        for item in reversed(self.flat.order):
            if isinstance(item, Stage):
                self._stage(item)
            else:
                self._node(item)
        outputs = [self._input_output(t) for t in self.system.inputs if self._wanted(t.name)]
        outputs += [self._param_output(t) for t in self.system.params if self._wanted(t.name)]
        outputs += [o for s in self.system.stages for o in self._initial_outputs(s)]
        return self._system(tuple(inputs), tuple(outputs)), self._record()

    def _wanted(self, name: str) -> bool:
        return self.wrt is None or name in self.wrt

    # --- outputs and streams ----------------------------------------------------------------------

    def _seed(self, output: Output, value: Expr) -> Tensor:
        if output.over_time:
            raise ValueError(f"`{output.name}` is summed over time; its adjoint is not a System")
        name = self._fresh(output.name)
        seed = Ref(name, frozenset(output.axes), output.field, Time.TOKEN, Now(0))
        self.renamed.append((output.name, name))
        self._pull([(value, seed)])
        return Tensor(name, output.axes, output.field, Constraint.NONE)

    def _fresh(self, name: str) -> str:
        return self.names.fresh(f"{name}_bar")

    def _name(self, wish: str, value: Expr | Cache, axes: Sequence[Axis], kind: Field) -> Ref:
        """Adds a stream and returns its value."""
        name = self.names.fresh(wish)
        self.streams.append(Stream(name, value, tuple(axes), kind))
        return Ref(name, frozenset(axes), kind, Time.TOKEN, Now(0))

    def _node(self, node: Node) -> None:
        waiting = self.cotangents.pop(node.name, [])
        if not waiting:
            return
        cotangent = self._name(f"{node.name}_bar", _sum(waiting, node.axes), node.axes, node.field)
        match node.value:
            case Expr():
                self._pull([(node.value, cotangent)])
            case Read(terms, direct):
                for stage in dict.fromkeys(self.home[t.source] for t in terms):
                    self._gradients(self._reverser(stage).add_read(node.value, cotangent))
                if direct is not None:
                    self._pull([(direct, cotangent)])
            case Cache(past, why):
                self._cache(past, why, cotangent)
            case MaxPlus(declared=True):
                self._maximum(node, node.value, cotangent)
            case MaxPlus():
                pass  # a reference: the outputs are the same for any other

    def _maximum(self, node: Node, value: MaxPlus, cotangent: Ref) -> None:
        """Reverses m_i = max(m_{i-1} + a_i, w_i): what m_i was hands the gradient on, g.

        g_i = cotangent_i + κ_{i+1} g_{i+1} with κ_i = 1 where m_{i-1} + a_i is the larger, 1/2
        where both are equal, 0 else; a_i gets κ_i g_i, and w_i the rest.
        """
        over = frozenset(node.axes)
        before = Ref(node.name, over, node.field, Time.TOKEN, Now(1))
        moved = add(before, value.log_decay)
        step = prim("step", sub(moved, value.log_weight))
        kept = self._name(f"{node.name}_kept", step, node.axes, node.field)
        state = self._fresh(node.name)
        following = Ref(kept.name, kept.over, kept.kind, kept.when, Now(-1))
        term = Term(state, -1, following, frozenset(), ONE)
        chain = (Factor((term,), (Drive(ones(over), cotangent),)),)
        block = Block(state, node.axes, node.field, chain, None, declared=False)
        self.stages.append(Stage(Direction.BACKWARD, (block,)))
        name = self.names.fresh(f"{state}_now")
        read = Read((Term(state, 0, ONE, frozenset(), ONE),))
        self.streams.append(Stream(name, read, node.axes, node.field))
        now = Ref(name, over, node.field, Time.TOKEN, Now(0))
        won, lost = mul(kept, now), mul(sub(ONE, kept), now)
        self._pull([(value.log_decay, won), (value.log_weight, lost)])

    # --- stages -----------------------------------------------------------------------------------

    def _reverser(self, stage: Stage) -> StageReverser:
        key = stage_key(stage)
        if key not in self.reversers:
            reverser = self.reversers[key] = StageReverser(stage, self.names.fresh)
            self.streams.extend(v.stream for v in reverser.forward)
        return self.reversers[key]

    def _stage(self, stage: Stage) -> None:
        reversed_stage = self._reverser(stage).finish()
        self.stages.append(reversed_stage.stage)
        self.streams.extend(v.stream for v in reversed_stage.values if v.cotangent)
        self.renamed.extend(reversed_stage.reversed_state)
        self._gradients(reversed_stage.of_update)
        for state, reversed_state in reversed_stage.reversed_state:
            self.steps.append(Step("reverse", f"{state} → {reversed_state}"))

    def _gradients(self, gradients: StageGradients) -> None:
        for gradient in gradients.maps:
            self._matrix(gradient)
        self._pull([(g.leaf, g.value) for g in gradients.vectors])

    # --- token-wise expressions -------------------------------------------------------------------

    def _pull(self, pairs: list[tuple[Expr, Expr]]) -> None:
        self._distribute(pull(pairs))

    def _distribute(self, gradients: Gradients) -> None:
        for ref, value in gradients.refs.items():
            self._ref(ref, value)
        for param, value in gradients.params.items():
            self.params.setdefault(param.name, []).append(value)
        for gradient in gradients.maps:
            self._matrix(gradient)
        for filtered in gradients.filters:
            self._filter(filtered)

    def _ref(self, ref: Ref, value: Expr) -> None:
        """Adds a contribution to what `ref` reads, at that value's own token."""
        if ref.name == FIRST:
            return  # it depends on nothing
        if isinstance(ref.at, Now) and ref.at.lag:
            moved = self._name(f"{ref.name}_bar_part", value, sorted(ref.axes), ref.field)
            value = Ref(moved.name, moved.over, moved.kind, moved.when, Now(-ref.at.lag))
        self.cotangents.setdefault(ref.name, []).append(value)

    def _matrix(self, gradient: MapGradient) -> None:
        self.matrices.setdefault(gradient.map.name, []).append(gradient)

    def _filter(self, filtered: FilterGradient) -> None:
        fir = filtered.filter
        axes = sorted(filtered.cotangent.axes)
        named = self._name("filter_bar", filtered.cotangent, axes, filtered.cotangent.field)
        arg = fir.arg
        assert isinstance(arg, Ref)  # filter_argument refuses everything else
        self._ref(Ref(arg.name, arg.over, arg.kind, arg.when, Now(0)), filter_argument(fir, named))
        copy = self._copy(fir.axis)
        self._pull([(fir.weight, filter_weight(fir, named, copy))])

    def _copy(self, axis: Axis) -> Axis:
        """A fresh axis of the same size."""
        root = axis.copy_of or axis.name
        index = 1 + max(d.axis.index for d in self.axes)
        new = Axis(index, self.names.fresh(f"{root}_row"), axis.heads, root)
        self.axes.append(Dimension(new, Size(axis), False))
        return new

    # --- sums that stay sums ----------------------------------------------------------------------

    def _cache(self, past: Past, why: str, cotangent: Ref) -> None:
        """Adds the contributions of Σ_j f(i, j), each of them a sum of its own."""

        def summed(value: Past) -> Expr:
            return self._name("sum_bar", Cache(value, why), sorted(value.axes), value.field)

        pulled = pull_past(past, cotangent)
        for ref, value in pulled.refs:
            self._ref(ref, summed(value))
        for param, value in pulled.params:
            self.params.setdefault(param.name, []).append(summed(value))
        for gradient in pulled.maps:
            outer = Past(past.var, past.relation, self._outer(gradient), None, past.lag)
            self.params.setdefault(gradient.map.name, []).append(summed(outer))

    # --- results ----------------------------------------------------------------------------------

    def _input_output(self, tensor: Tensor) -> Output:
        name = self._fresh(tensor.name)
        self.renamed.append((tensor.name, name))
        value = _sum(self.cotangents.pop(tensor.name, []), tensor.axes)
        return Output(name, Direct(value), tensor.axes, tensor.field)

    def _initial_outputs(self, stage: Stage) -> list[Output]:
        end = self._end(stage.direction)
        back = dict(self.renamed)
        kinds = {b.state: b.field for s in self.stages for b in s.blocks}
        out: list[Output] = []
        for b in stage.blocks:
            if self._wanted(b.state):
                name = self.names.fresh(f"{b.state}_initial_bar")
                state = back[b.state]
                value: ReadOut = Read((Term(state, 0, ONE, frozenset(), ONE),))
                if b.field is Field.REAL and kinds[state] is Field.COMPLEX:
                    value = Cast(ComplexPart.RE, value)
                out.append(Output(name, Gate(end, value), b.axes, b.field, over_time=True))
        return out

    def _end(self, direction: Direction) -> Expr:
        """1 at the token where stages of a direction start, 0 elsewhere."""
        if direction is Direction.FORWARD:
            return first()
        if self.following is None:
            one = self._name("token", ONE, (), Field.REAL)
            # Beyond the last token every name is 0.
            self.following = Ref(one.name, one.over, one.kind, one.when, Now(-1))
        return sub(ONE, self.following)

    def _param_output(self, tensor: Tensor | MapTensor) -> Output:
        name = self._fresh(tensor.name)
        self.renamed.append((tensor.name, name))
        parts = self.params.pop(tensor.name, [])
        if isinstance(tensor, Tensor):
            value = _sum(parts, tensor.axes)
            return Output(name, Direct(value), tensor.axes, tensor.field, over_time=True)
        axes = self._matrix_axes(tensor.map)
        parts += [self._outer(g) for g in self.matrices.pop(tensor.name, [])]
        value = _sum(parts, axes)
        return Output(name, Direct(value), axes, tensor.map.field, over_time=True)

    def _matrix_axes(self, map: LinearMap) -> tuple[Axis, ...]:
        """Axes of a stored matrix, `[*each, *target, *source]` with copies of doubled names."""
        source = tuple(self._row(a) if a in map.target else a for a in map.source)
        return (*map.each, *map.target, *source)

    def _row(self, axis: Axis) -> Axis:
        """The copy of an axis that numbers a matrix's columns; one for all matrices."""
        root = axis.copy_of or axis.name
        for d in self.axes:
            if d.axis.copy_of == root and d.axis.name.startswith(f"{root}_row"):
                return d.axis
        return self._copy(axis)

    def _outer(self, g: MapGradient) -> Expr:
        """Σ over other axes of cotangent ⊗ conj(argument), with the axes of the matrix."""
        map = g.map
        argument, cotangent = g.argument, g.cotangent
        for a in map.source:
            if a in map.target:
                argument = Rename(a, self._row(a), argument)
        axes = frozenset(self._matrix_axes(map))
        product = mul(cotangent, conj(argument))
        product = total(product.axes - axes, product)
        missing = axes - product.axes
        product = mul(product, ones(missing)) if missing else product
        return real(product) if map.field is Field.REAL else product

    def _system(self, inputs: tuple[Tensor, ...], outputs: tuple[Output, ...]) -> System:
        forward = [n.stream for n in self.flat.nodes]
        streams, stages = _reached(
            [*forward, *self.streams], [*self.system.stages, *self.stages], outputs
        )
        return System(
            name=f"{self.system.name}_adjoint",
            doc=f"gradient of {self.system.name}",
            axes=tuple(self.axes),
            inputs=self.system.inputs + inputs,
            params=self.system.params,
            buffers=self.system.buffers,
            abstracts=self.system.abstracts,
            streams=streams,
            stages=stages,
            outputs=outputs,
            definition=(),
            claims=(),
            derivation=(*self.system.derivation, Step("adjoint", self.system.name), *self.steps),
        )

    def _record(self) -> Record:
        return Record("adjoint", tuple(self.steps), tuple(self.renamed))


def _sum(parts: list[Expr], axes: Sequence[Axis]) -> Expr:
    """Σ of contributions with exactly these axes; zeros when there are none."""
    value = add(*parts)
    missing = frozenset(axes) - value.axes
    return mul(value, ones(missing)) if missing else value


def _reached(
    streams: list[Stream], stages: list[Stage], outputs: tuple[Output, ...]
) -> tuple[tuple[Stream, ...], tuple[Stage, ...]]:
    """The streams and stages that the outputs need."""
    home = home_of(stages)
    needs = {stage_key(s): needs_of(s, home) for s in stages}
    needs |= {s.name: needs_of(s.value, home) for s in streams}
    seen = reachable(needs, (n for o in outputs for n in needs_of(o.value, home)))
    return (
        tuple(s for s in streams if s.name in seen),
        tuple(s for s in stages if stage_key(s) in seen),
    )
