"""The text of an `AllPairs`: its summand, the derived gradients, and the call that adds them up.

Two functions hold what the plan says, with the spec's names: the summand at pairs of tokens, and
the gradients of what it reads. What goes over blocks of queries and selects the pairs that count is
the same for every sum of a module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dsfc.expr.build import walk
from dsfc.expr.tree import Axis, Expr, Field, children
from dsfc.plan.ir import Buffer, Plan
from dsfc.plan.pairs_ir import AllPairs

from .layout import tuple_text, wrapped
from .token_functions import function_lines, size_in


@dataclass(frozen=True)
class PairsText:
    """The values that fill `pairs.py.j2`.

    Attributes:
        kernel: the sum.
        suffix: of the names of its functions; empty when the module has one sum.
        arrays: the plan's buffers by name.
        names: identifier of each name of the plan.
    """

    kernel: AllPairs
    suffix: str
    arrays: Mapping[str, Buffer]
    names: Callable[[str], str]

    @property
    def summand(self) -> list[str]:
        """The function that gives the summand."""
        about = "Returns the summand at pairs of tokens, `[B, I, J, ...]`."
        return self._function("_summand", about, [], [self.kernel.body], [self.kernel.axes])

    @property
    def gradients(self) -> list[str]:
        """The function that gives the gradients of leaves."""
        k = self.kernel
        axes = {x.name: x.axes for x in k.leaves}
        gradients = {g.leaf: g.value for g in k.gradients}
        named = [x.name for x in k.leaves if x.name in gradients]
        return self._function(
            "_pair_gradients",
            "Returns the gradients of what the summand reads, at pairs of tokens.",
            [(k.bar, k.axes)],
            [gradients[n] for n in named],
            [axes[n] for n in named],
        )

    @property
    def sizes(self) -> list[str]:
        """The function that gives the sizes of the sum's axes, read off what the summand reads."""
        places = [(self.names(x.name), x.axes) for x in self.kernel.leaves]
        items = [size_in(a.copy_of or a.name, places) for a in self.kernel.axes]
        used = {n for n, _ in places if any(i.startswith(f"{n}.") for i in items)}
        params = [f"{n}: Tensor" if n in used else f"_{n}: Tensor" for n, _ in places]
        head = wrapped(f"def _sizes{self.suffix}", params, " -> tuple[int, ...]:", "")
        about = '    """Returns the sizes of the axes of the sum."""'
        return [*head.split("\n"), about, f"    return {tuple_text(items)}"]

    def _function(
        self,
        name: str,
        about: str,
        bars: list[tuple[str, tuple[Axis, ...]]],
        results: list[Expr],
        axes: list[tuple[Axis, ...]],
    ) -> list[str]:
        lag: list[tuple[str, tuple[Axis, ...]]] = [(self.kernel.lag or "distance", ())]
        inputs = [(x.name, x.axes) for x in self.kernel.leaves]
        places = [(self.names(n), a) for n, a in (*inputs, *lag, *bars)]
        like, _ = places[0]
        leaves = self.kernel.leaves
        if leaves and self.arrays[leaves[0].buffer].field is Field.COMPLEX:
            like += ".real"
        return function_lines(
            f"{name}{self.suffix}", about, places, like, self.names, [], results, axes
        )

    # --- what makes the operators -----------------------------------------------------------------

    @property
    def constant(self) -> str:
        """The suffix as constants have it."""
        return self.suffix.upper()

    @property
    def leaves(self) -> list[str]:
        """Identifiers of what the summand reads."""
        return [self.names(x.name) for x in self.kernel.leaves]

    @property
    def leaves_tuple(self) -> str:
        """What the summand reads, as a tuple."""
        return tuple_text(self.leaves)

    @property
    def make(self) -> str:
        """The constant that gathers what is known of the sum."""
        k = self.kernel
        gradients = {g.leaf for g in k.gradients}
        wanted = [str(at) for at, x in enumerate(k.leaves) if x.name in gradients]
        items = [
            f"_summand{self.suffix}",
            f"_pair_gradients{self.suffix}",
            f"_sizes{self.suffix}",
            tuple_text(wanted),
            str(len(k.queries)),
            str(len(k.keys)),
            str(k.later),
            str(k.bound),
            str(self.arrays[k.output].field is Field.COMPLEX),
        ]
        return wrapped(f"_SUM{self.constant} = _Pairs", items, "", "")

    def _params(self, bars: list[str]) -> list[str]:
        tensors = [f"{n}: Tensor" for n in (*bars, *self.leaves)]
        return ["seen: Tensor", "lengths: Tensor | None", *tensors, "length: int", "block: int"]

    def _arguments(self, bars: list[str]) -> list[str]:
        return ["seen", "lengths", *bars, *self.leaves, "length", "block"]

    @property
    def define_forward(self) -> str:
        """The `def` line of the operator that adds up."""
        name = f"def _pairs_forward{self.suffix}"
        return wrapped(name, self._params([]), " -> Tensor:", "")

    @property
    def define_backward(self) -> str:
        """The `def` line of the operator that gives gradients."""
        name = f"def _pairs_backward{self.suffix}"
        count = len(self.leaves)
        result = "Tensor" if self.alone else f"tuple[{', '.join(['Tensor'] * count)}]"
        return wrapped(name, self._params(["bar"]), f" -> {result}:", "")

    @property
    def alone(self) -> bool:
        """Whether there is one gradient: PyTorch takes a tuple of one result for the result."""
        return len(self.leaves) == 1

    @property
    def forward_method(self) -> str:
        """The `def` line of the forward of the autograd function that adds up."""
        return wrapped("def forward", self._params([]), " -> Tensor:", "    ")

    @property
    def backward_method(self) -> str:
        """The `def` line of the forward of the autograd function that gives gradients."""
        return wrapped("def forward", self._params(["bar"]), " -> tuple[Tensor, ...]:", "    ")

    @property
    def call_forward(self) -> str:
        """Returns what the operator gives that adds up."""
        head = f"return _OPS.pairs_forward{self.suffix}"
        return wrapped(head, self._arguments([]), "", "        ")

    @property
    def call_backward(self) -> str:
        """Returns what the operator gives that gives gradients, as a tuple."""
        head = f"_OPS.pairs_backward{self.suffix}"
        if self.alone:
            call = wrapped(f"grad = {head}", self._arguments(["bar"]), "", "        ")
            return f"{call}\n        return (grad,)"
        return wrapped(f"return {head}", self._arguments(["bar"]), "", "        ")

    @property
    def closing(self) -> str:
        """Statements behind the runtime: the sum, its operators' registration, what calls them."""
        backward = [self.enlist_backward] if self.leaves else []
        last = f"_all_pairs{self.suffix} = _applied(_AllPairs{self.suffix})"
        return "\n".join([self.make, self.enlist_forward, *backward, last])

    @property
    def enlist_forward(self) -> str:
        """Registers the operator that adds up."""
        s, count = self.suffix, _operations([self.kernel.body])
        parts = [f"_fake_sum(_SUM{self.constant})", f"_sum_flops({count})"]
        items = ["NAMESPACE", f'"pairs_forward{s}"', f"_pairs_forward{s}", *parts]
        return wrapped("_register", items, "", "")

    @property
    def enlist_backward(self) -> str:
        """Registers the operator that gives gradients."""
        s, count = self.suffix, _operations([g.value for g in self.kernel.gradients])
        parts = ["_fake_spread", f"_spread_flops({count})"]
        items = ["NAMESPACE", f'"pairs_backward{s}"', f"_pairs_backward{s}", *parts]
        return wrapped("_register", items, "", "")


def _operations(values: list[Expr]) -> int:
    """Operations at a pair of tokens and number of the sum; what stands there is added up too."""
    return sum(1 for v in values for e in walk(v) if children(e)) + len(values)


def pairs(plan: Plan, names: Callable[[str], str]) -> tuple[PairsText, ...]:
    """Returns what the templates of each sum are filled with, in the order of the plan."""
    arrays = {b.name: b for b in plan.arrays}
    kernels = [k for k in plan.kernels if isinstance(k, AllPairs)]
    suffixes = [""] if len(kernels) == 1 else [f"_{n}" for n in range(1, len(kernels) + 1)]
    return tuple(PairsText(k, s, arrays, names) for k, s in zip(kernels, suffixes, strict=True))


def pair_lines(
    text: PairsText,
    whole: Mapping[str, str],
    like: str,
    size: Callable[[Axis], str],
    cast: Callable[[str, str], str],
) -> list[str]:
    """Returns the statements of the functional form that compute a sum.

    Args:
        text: the sum.
        whole: variable that holds all tokens of a buffer that is kept.
        like: identifier of an input.
        size: gives the variable that holds an axis' size.
        cast: text of a value in a dtype: `dtype`, `wide` or `field`.
    """
    k, names = text.kernel, text.names
    arguments = []
    for leaf in k.leaves:
        b = text.arrays[leaf.buffer]
        kept = leaf in k.keys and not k.later
        value = whole[leaf.buffer] if kept else names(leaf.buffer)
        if leaf in k.fixed:
            value = f"{value}.unsqueeze(0)"
        arguments.append(cast(value, "field" if b.field is Field.COMPLEX else "wide"))
    out = names(k.output)
    seen = names(k.present) if k.later else whole[k.present]
    length = f"{like}.shape[1]"
    operands = [cast(seen, "wide"), "lengths", *arguments, length]
    operands.append('1 if mode == "recurrent" else chunk')
    sizes = "".join(f", {size(a)}" for a in k.axes)
    result = cast(out, "field" if text.arrays[k.output].field is Field.COMPLEX else "dtype")
    return [
        "    if mode != _EACH:",
        "        _legal(mode, MODES)",
        *wrapped(f"{out} = _all_pairs{text.suffix}", operands, "", "    ").split("\n"),
        f"    {out} = {result}.expand(*{like}.shape[:2]{sizes})",
    ]
