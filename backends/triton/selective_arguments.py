"""What the operators of a selective scan take, and how it lies in memory for its kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from dsfc.expr.build import ZERO
from dsfc.expr.tree import Axis, Expr, Field, Param
from dsfc.fused.ir import SUFFIXES
from dsfc.fused.names import fresh
from dsfc.plan.ir import Role

from ..torch.layout import Call, wrapped
from ..torch.selective import SelectiveSkeleton
from .cost.counts import WIDTH, KernelCost
from .cost.scans import kernel_costs
from .elementwise import ElementwiseKernels
from .gated import arguments

_WORDS = frozenset("q k q_im k_im field added room states H P N dq dk d_added d_last".split())
"""Words of the operators' functions besides those of other forms."""
MOST_PAIRS = {False: 16, True: 8}
"""Whether keys or reads are complex → most complex states of a channel, which forwards are a tile:
what registers hold. One by one, their sines and cosines would be a program that takes minutes to
compile."""


@dataclass(frozen=True)
class Leaf:
    """A leaf of log λ that is not computed inside, as an argument.

    Attributes:
        name: of the buffer.
        argument: of the operators.
        plain: argument of the torch form.
        axes: of the buffer.
        along: its axes as the kernels read it: those of a value, of a key or of the state.
        constant: whether it does not vary over time.
        part: what its gradient is of that of the torch form's argument, where that is complex.
    """

    name: str
    argument: str
    plain: str
    axes: tuple[Axis, ...]
    along: tuple[Axis, ...]
    constant: bool
    part: str = ""


@dataclass(frozen=True)
class SelectiveArguments(ElementwiseKernels):
    """The arguments of a selective scan whose operators take what its gates read.

    They are query and key, one `[B, L, *axes]` for each token-wise leaf of the gates and of log λ,
    one `[B, *axes]` for each constant, and the state. Kernels have axes heads, keys and channels,
    each flattened to one: values are `[B, L, H, P]`, queries and keys `[B, L, H, N]`, states `[B,
    H, P, N]`, constants `[B, H, N, P]`. Where a spec has its axes in that order, nothing is moved.
    """

    plain_scan: SelectiveSkeleton = field(kw_only=True)

    # --- arguments -------------------------------------------------------------------------------

    @property
    def _groups(self) -> tuple[tuple[Axis, ...], tuple[Axis, ...], tuple[Axis, ...]]:
        return self.scan.heads, self.scan.channels, self.scan.keys

    @cached_property
    def _arguments(self) -> dict[str, str]:
        rates = dict(self.gates.rates)
        leaves = (n for n in self._log_leaves if n not in rates)
        return arguments((*self.gates.tokens, *self.gates.constants, *leaves), self._words)

    @property
    def _words(self) -> frozenset[str]:
        decays = self.plain_scan.decays
        return super()._words | _WORDS | {*decays, *(f"d{x}" for x in decays)}

    @cached_property
    def _log_leaves(self) -> dict[str, str]:
        """Leaf of log λ → argument of the torch form, token-wise ones first.

        Where λ is complex the torch form has complex leaves, and the kernels planes of those.
        """
        plain = dict(zip(self.plain_scan.leaf_buffers, self.plain_scan.decays, strict=True))
        if not self.complex:
            return plain
        return {p.leaf: x for name, x in plain.items() for p in self.gates.parts if p.of == name}

    @cached_property
    def _parts(self) -> dict[str, str]:
        """Leaf of log λ → what it is of the argument of the torch form, as an attribute."""
        kinds = {"re": ".real", "im": ".imag"}
        return {p.leaf: kinds[p.part] for p in self.gates.parts}

    # --- complex states --------------------------------------------------------------------------

    @property
    def planes(self) -> tuple[str, ...]:
        """Of the output; it is real."""
        return ("",)

    @property
    def state_planes(self) -> tuple[str, ...]:
        """What the names of a state's planes end with."""
        return SUFFIXES if self.complex else ("",)

    def _vector(self, name: str, buffer: str | None) -> list[str]:
        """Arguments of the planes of a key or query, which may be real beside a complex state."""
        assert buffer is not None
        pair = self.arrays[buffer].field is Field.COMPLEX
        return [name, f"{name}_im"] if pair else [name]

    @property
    def queries(self) -> list[str]:
        """Arguments of the query: its planes."""
        return self._vector("q", self.scan.read)

    @property
    def keys(self) -> list[str]:
        """Arguments of the key: its planes."""
        return self._vector("k", self.scan.key)

    @property
    def most_pairs(self) -> int:
        """Most complex states of a channel for which there are kernels."""
        return MOST_PAIRS[len(self.vectors) > 2]

    @property
    def vectors(self) -> list[str]:
        """Arguments of query and key."""
        return [*self.queries, *self.keys]

    @cached_property
    def others(self) -> tuple[Leaf, ...]:
        """Leaves of log λ that are not computed inside."""
        heads, channels, keys = self._groups
        value, key, state = (*heads, *channels), (*heads, *keys), (*heads, *channels, *keys)
        fixed = (*heads, *keys, *channels)
        rates = dict(self.gates.rates)
        plain = self._log_leaves
        taken = {*self._arguments.values(), *self._words}
        out = []
        for name in plain:
            if name in rates:
                continue
            b = self.arrays[name]
            along = next(a for a in (value, key, state) if set(b.axes) <= set(a))
            constant = b.role is Role.CONSTANT
            along = fixed if constant else along
            # An argument that the gates read too is passed twice.
            argument = self._arguments[name]
            if name in (*self.gates.tokens, *self.gates.constants):
                argument = fresh(f"{argument}_rate", taken)
            taken.add(argument)
            part = self._parts.get(name, "")
            out.append(Leaf(name, argument, plain[name], b.axes, along, constant, part))
        return tuple(out)

    @property
    def gate_tokens(self) -> list[str]:
        """Arguments over time that the gates read."""
        return [self._arguments[n] for n in self.gates.tokens]

    @property
    def gate_constants(self) -> list[str]:
        """Constant arguments that the gates read."""
        return [self._arguments[n] for n in self.gates.constants]

    @property
    def timed_names(self) -> list[str]:
        """Arguments `[B, L, *axes]`."""
        rest = [x.argument for x in self.others if not x.constant]
        return [*self.vectors, *self.gate_tokens, *rest]

    @property
    def constants(self) -> list[str]:
        """Arguments `[B, *axes]` besides the state."""
        return [*self.gate_constants, *(x.argument for x in self.others if x.constant)]

    @property
    def keyed(self) -> list[str]:
        """Arguments over time that the kernels read along the keys: `[B, L, H, N]`."""
        heads, _, keys = self._groups
        rest = [x for x in self.others if not x.constant and x.along == (*heads, *keys)]
        return [*self.vectors, *(x.argument for x in rest)]

    @property
    def channelled(self) -> list[str]:
        """Arguments over time that the kernels read along the channels: `[B, L, H, P]`."""
        heads, channels, _ = self._groups
        rest = [x for x in self.others if not x.constant and x.along == (*heads, *channels)]
        return [*self.gate_tokens, *(x.argument for x in rest)]

    @property
    def whole(self) -> list[str]:
        """Arguments over time that have all axes: `[B, L, H, P, N]`."""
        return [n for n in self.timed_names if n not in (*self.keyed, *self.channelled)]

    @property
    def fixed(self) -> list[str]:
        """Constants of channel and state: `[B, H, N, P]`, so that a warp reads neighbours."""
        return [x.argument for x in self.others if x.constant]

    @property
    def like(self) -> str:
        """The argument that outputs are like."""
        return self._arguments[self.gates.tokens[0]]

    @property
    def options_of_launch(self) -> list[str]:
        """What the forward operator and its launch take behind the leaves."""
        return ["lengths", "room"]

    @property
    def kept(self) -> list[str]:
        """What of the forward operator's outputs its gradient takes."""
        return ["states"]

    @property
    def nothing_kept(self) -> str:
        """A further output, empty where the torch form ran."""
        return ", room.new_empty(room.shape)"

    @property
    def can_go_back(self) -> str:
        """A condition of the backward launch."""
        return " and states.shape[1]"

    @property
    def adds(self) -> bool:
        """Whether something is added to the output."""
        return self.gates.added != ZERO

    @property
    def flops_shape(self) -> str:
        """Reads the sizes off the shapes."""
        return f"size = {self.like}[1] * math.prod(S)"

    @property
    def forward_flops(self) -> str:
        """Operations of the forward pass."""
        return self.plain_scan.forward_flops

    @property
    def backward_flops(self) -> str:
        """Operations of the backward pass."""
        return self.plain_scan.backward_flops

    def register_forward(self) -> str:
        """Registers the forward operator."""
        at, state = self.leaves.index(self.like), len(self.leaves) - 1
        return self._register("forward", f"({at}, {state}, {state + 2})")

    @property
    def declined(self) -> str:
        """Why no kernel runs, in an operator."""
        if not self.complex:
            return super().declined
        count = " * ".join(self._size(a) for a in self.scan.keys)
        return f"_unfit_pairs(S, {self.like}.dtype, {self.named_mode}, {count}, {self.most_pairs})"

    @property
    def costs(self) -> tuple[KernelCost, ...]:
        """What the kernels cost."""
        H, N, P = (Param(n, frozenset()) for n in "HNP")
        return kernel_costs(
            self.scan,
            self.gates,
            sizes=(H, N, P),
            vectors=(len(self.keys), len(self.queries)),
        )

    @property
    def sizes_of_work(self) -> dict[Expr, str]:
        """Parameters of the costs: bytes of a number, heads, states, channels."""
        sizes: dict[Expr, str] = {Param(n, frozenset()): n for n in "HNP"}
        return {WIDTH: "W", **sizes}

    def cuts_of(self, heads: str, states: str, channels: str) -> dict[str, Call]:
        """Calls that tell into which segments a launch cuts time, of sizes."""
        more = "x.expand(batch, length, 0)", heads, channels, states
        return {
            f"{d}s": Call("_selective_grid", (f'"{d}{self.direction}"', *more, self.work_name(d)))
            for d in ("forward", "backward")
        }

    # --- layouts ---------------------------------------------------------------------------------

    def _axes_of(self, argument: str) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
        """The axes of an argument, in the operators and in the kernels."""
        heads, channels, keys = self._groups
        if argument in self.vectors:
            name = self.scan.read if argument in self.queries else self.scan.key
            assert name is not None
            return self.arrays[name].axes, (*heads, *keys)
        if argument == "S":
            return tuple(sorted((*heads, *channels, *keys))), (*heads, *channels, *keys)
        for x in self.others:
            if x.argument == argument:
                return x.axes, x.along
        return tuple(sorted((*heads, *channels))), (*heads, *channels)

    def laid(self, argument: str, text: str | None = None) -> str:
        """An argument with all axes that the kernels want, in their order."""
        axes, along = self._axes_of(argument)
        lead = 1 if argument in (*self.constants, "S") else 2
        text = text or argument
        whole = tuple(sorted(along))
        if axes != whole:
            slots = ", ".join(":" if a in axes else "None" for a in whole)
            sizes = ", ".join("-1" if a in axes else self._size(a) for a in whole)
            front = ", ".join([":"] * lead)
            text = f"{text}[{front}, {slots}].expand({', '.join(['-1'] * lead)}, {sizes})"
        return f"{_moved(text, whole, along, lead)}.contiguous()"

    def is_laid(self, argument: str) -> bool:
        """Whether an argument has the kernels' axes already."""
        axes, along = self._axes_of(argument)
        return axes == along

    def _size(self, axis: Axis) -> str:
        axes, _ = self._axes_of("S")
        return f"S.shape[{1 + axes.index(axis)}]"

    def sizes(self) -> str:
        """A statement that names heads, channels and keys."""
        out = []
        for group in self._groups:
            out.append(" * ".join(self._size(a) for a in group) or "1")
        return f"    H, P, N = {', '.join(out)}"

    def given(self) -> str:
        """A statement that lays out the arguments."""
        items = [self.laid(x) for x in self.inputs]
        return wrapped("    given = ", items, "", "    ", started=True)

    @property
    def moved_gradients(self) -> list[str]:
        """Statements that give gradients their axes back; what was spread is summed up."""
        out = []
        for at, x in enumerate(self.inputs):
            if not self.is_laid(x):
                axes, along = self._axes_of(x)
                lead = 1 if x in self.constants else 2
                out += self._turned(f"grads[{at}]", along, lead, axes)
        return [*out, *self.turned_state("grads[-1]")]

    def laid_output(self, text: str) -> str:
        """The gradient of the output in the kernels' order."""
        heads, channels, _ = self._groups
        along = (*heads, *channels)
        return f"{_moved(text, tuple(sorted(along)), along, 2)}.contiguous()"

    def turned_output(self, name: str) -> list[str]:
        """Statements that give the output, `[B, L, H, P]` in memory, its axes."""
        heads, channels, _ = self._groups
        along = (*heads, *channels)
        if along == tuple(sorted(along)):
            return [f"    {name} = {name}.reshape({self.like}.shape)"]
        return self._turned(name, along, 2, along)

    def turned_state(self, name: str) -> list[str]:
        """The same of the state."""
        axes, along = self._axes_of("S")
        if axes == along:
            return [f"    {name} = {name}.reshape(S.shape)"]
        return self._turned(name, along, 1, along)

    def _turned(
        self, name: str, along: tuple[Axis, ...], lead: int, kept: tuple[Axis, ...]
    ) -> list[str]:
        """Statements that undo `laid`; axes that are not kept are summed up."""
        whole = tuple(sorted(along))
        sizes = ", ".join([*["B", "L"][:lead], *(self._size(a) for a in along)])
        moved = _moved("x", along, whole, lead)
        gone = [str(lead + at) for at, a in enumerate(whole) if a not in kept]
        moved += f".sum(({', '.join(gone)},))" if gone else ""
        return [f"    x = {name}.reshape({sizes})", f"    {name} = {moved}.contiguous()"]

    @property
    def keyed_places(self) -> list[int]:
        """Places of `keyed` among the arguments."""
        return [self.inputs.index(x) for x in self.keyed]

    @property
    def sliced_by_groups(self) -> tuple[int, ...]:
        """Places of arguments whose gradients come in a slice for each group of states."""
        return tuple(self.inputs.index(x) for x in self.channelled)

    @property
    def sliced(self) -> list[tuple[int, str]]:
        """Places of arguments whose gradients come out in slices, and how many of these."""
        slices = dict.fromkeys(self.gate_constants, "grid[1]")
        slices |= dict.fromkeys(self.fixed, "segments")
        return [(self.inputs.index(x), count) for x, count in slices.items()]


def _moved(text: str, axes: tuple[Axis, ...], order: tuple[Axis, ...], lead: int) -> str:
    """An array whose trailing dimensions are put in another order."""
    if axes == order:
        return text
    places = [*range(lead), *(lead + axes.index(a) for a in order)]
    return f"{text}.permute({', '.join(map(str, places))})"
