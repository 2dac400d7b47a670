"""The text of an `AllPairs`: its summand, the derived gradients, and the call that adds them up.

Two functions hold what the plan says, with the spec's names: the summand at pairs of tokens, and
the gradients of what it reads. What goes over blocks of queries and selects the pairs that count is
the same for every sum of a module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dsfc.plan.ir import AllPairs, Buffer, Plan
from dsfc.primitives.expr import Axis, Expr, Field

from .layout import wrapped
from .recurrence import function_lines


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
        found = {g.leaf: g.value for g in k.gradients}
        named = [x.name for x in k.leaves if x.name in found]
        return self._function(
            "_pair_gradients",
            "Returns the gradients of what the summand reads, at pairs of tokens.",
            [(k.bar, k.axes)],
            [found[n] for n in named],
            [axes[n] for n in named],
        )

    def _function(
        self,
        name: str,
        about: str,
        bars: list[tuple[str, tuple[Axis, ...]]],
        results: list[Expr],
        axes: list[tuple[Axis, ...]],
    ) -> list[str]:
        lag: list[tuple[str, tuple[Axis, ...]]] = [(self.kernel.lag or "distance", ())]
        given = [(x.name, x.axes) for x in self.kernel.leaves]
        places = [(self.names(n), a) for n, a in (*given, *lag, *bars)]
        return function_lines(f"{name}{self.suffix}", about, places, self.names, [], results, axes)

    @property
    def make(self) -> str:
        """The constant that gathers what is known of the sum."""
        k = self.kernel
        found = {g.leaf for g in k.gradients}
        wanted = [str(at) for at, x in enumerate(k.leaves) if x.name in found]
        items = [
            f"_summand{self.suffix}",
            f"_pair_gradients{self.suffix}",
            f"({', '.join(wanted)}{',' if len(wanted) == 1 else ''})",
            str(len(k.queries)),
            str(len(k.keys)),
            str(k.later),
            str(k.bound),
        ]
        return wrapped(f"_SUM{self.suffix.upper()} = _Pairs", items, "", "")


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
            value = f"{value}[None, None]"
        arguments.append(cast(value, "field" if b.field is Field.COMPLEX else "wide"))
    out = names(k.output)
    seen = names(k.present) if k.later else whole[k.present]
    given = [f"_SUM{text.suffix.upper()}", '1 if mode == "recurrent" else chunk']
    given += [f"{like}.shape[1]", seen, "lengths"]
    sizes = "".join(f", {size(a)}" for a in k.axes)
    made = cast(out, "field" if text.arrays[k.output].field is Field.COMPLEX else "dtype")
    return [
        "    _legal(mode)",
        *wrapped(f"{out} = _AllPairs.apply", [*given, *arguments], "", "    ").split("\n"),
        f"    {out} = {made}.expand(*{like}.shape[:2]{sizes})",
    ]
