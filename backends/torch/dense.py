"""The dense form: a full matrix Λ, the same at every token; powers of it by doubling."""

from __future__ import annotations

from dsfc.plan.scan_ir import Factor

from .layout import tuple_text
from .skeletons import VARIABLE, Skeleton


class DenseSkeleton(Skeleton):
    """A scan over values `[B, L, C, I]`, with a transition `[G, C, N, N]` and states `[B, C, N]`.

    A convolution has key and read too, `[G, C, N, 1]` and `[G, C, 1, N]`, and I is 1; without, I is
    N, what goes in is added to the state and what comes out is the state. G divides B: the
    constants of each group of B / G sequences, 1 but under vmap. C may be 1 in what heads share.
    """

    @property
    def form(self) -> str:
        """Name of the template."""
        return "dense"

    @property
    def responds(self) -> bool:
        """Whether there are key and read: one response of a few numbers per head."""
        return self.scan.key is not None

    @property
    def tokens(self) -> list[str]:
        """Read, key and value; only the value varies over time."""
        return ["q", "k", "v"] if self.responds else ["v"]

    @property
    def varying(self) -> list[str]:
        """Arguments that have an axis of time: the value alone."""
        return ["v"]

    @property
    def inputs(self) -> list[str]:
        """All arguments but the state."""
        return [*self.tokens, "a"]

    @property
    def flops_shape(self) -> str:
        """Reads the sizes off the shapes."""
        return "size = v[1] * math.prod(S) * S[-1]"

    @property
    def forward_flops(self) -> str:
        """Operations of the forward pass."""
        return "8 * size" if self.complex else "2 * size"

    @property
    def backward_flops(self) -> str:
        """Operations of the backward pass."""
        return "24 * size" if self.complex else "6 * size"

    def driven(self, value: str) -> str:
        """Text of what a value adds to the state."""
        return f"k @ {value}" if self.responds else value

    def seen(self, state: str) -> str:
        """Text of what is read of a state."""
        return f"q @ {state}" if self.responds else state

    def pulled(self, cotangent: str) -> str:
        """Text of what an output's gradient adds to the state's."""
        return f"q.mT @ {cotangent}" if self.responds else cotangent

    def given(self, state: str) -> str:
        """Text of the gradient of a value, of the state's."""
        return f"k.mT @ {state}" if self.responds else state

    @property
    def constant_names(self) -> list[str]:
        """Variables of key and read, where there are any."""
        results = [s.result for s in self.adjoint.scans]
        return [VARIABLE[f] for f in (Factor.READ, Factor.KEY) if f in results]

    @property
    def constants(self) -> str:
        """What is the same at every token, as a tuple."""
        return tuple_text([*self.constant_names, "a"])

    @property
    def constant_grads(self) -> str:
        """Its gradients, as a tuple."""
        return tuple_text([f"d{x}" for x in (*self.constant_names, "a")])

    @property
    def targets(self) -> str:
        """Its gradients, as what is assigned to."""
        text = self.constant_grads
        return text if self.constant_names == [] else text[1:-1]

    @property
    def leading_grads(self) -> str:
        """Gradients before the value's."""
        return "".join(f"d{x}, " for x in self.constant_names)
