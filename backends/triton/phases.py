"""The matrix form of complex decays: one real matrix scan of both planes of a state.

With Φ_i = Σ_{l≤i} φ_l, the sum of the phases of λ, S_i = exp(i Φ_i) R_i where

    R_i = |λ_i| R_{i-1} + k_i ⊗ (exp(-i Φ_i) v_i)        q_i · S_i = exp(i Φ_i) (q_i · R_i)

Keys, reads and |λ| are real, so the planes of R are channels of one scan, which has the kernels of
all matrix scans. Operators of torch rotate values in front of them and outputs behind them.

In the loss, φ_t stands wherever something passes over token t, as log |λ_t| does, but times i. So
its gradient is that of log |λ_t| of the same scan driven by i times its values, from i times its
state: the backward kernels run once more. The sum over time of what each rotation gives would be
the same number, with the rounding errors of all tokens behind, those behind a λ of 0 too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from dsfc.expr.tree import Field
from dsfc.fused.ir import SUFFIXES, PrologueEpilogue, halves, real_imag
from dsfc.plan.ir import Buffer
from dsfc.plan.scan_ir import LogDecay, Scan

from ..torch.skeletons import Skeleton
from .cost.counts import KernelCost
from .matrix import MatrixKernels
from .statements import Statements


class RotatedKernels(MatrixKernels):
    """The real scan of both planes, launched by the operators of the complex one."""

    @property
    def launcher(self) -> str:
        """What the names of launches start with."""
        return "_launch_rotated"

    def _like_values(self, name: str) -> str:
        # Outputs are rotated by their phases first, and rounded once, after that.
        return f"    {name} = torch.empty(v.shape, dtype=S.dtype, device=v.device)"


@dataclass(frozen=True)
class PhasedKernels(MatrixKernels):
    """A matrix scan of pairs: a complex state of real keys and reads.

    Arguments are as of other matrix scans, the value as one plane or two, log |λ| and the phase
    `[B, L, h]`, and the complex state `[B, h, n, p]`. Outputs are the planes that are read.
    """

    @property
    def kernels(self) -> str:
        """Name of the template of its kernels."""
        return "phased_kernels.py.j2"

    @cached_property
    def rotated(self) -> RotatedKernels:
        """The scan that kernels run."""
        assert self.scan.decay is not None
        (size, _), (log, _) = self.scan.decay.leaves, real_imag(self.scan.decay.expr)
        real = replace(
            self.scan, decay=LogDecay(log, (size,)), field=Field.REAL, before=False, real=False
        )
        return RotatedKernels(
            real,
            self.adjoint,
            self.suffix,
            self.family,
            self.arrays,
            self.shared,
            features=self.features,
            plain_scan=self.plain_scan,
        )

    @property
    def narrow(self) -> bool:
        """Never: rotated, a column of one channel is two channels like all others."""
        return False

    @property
    def values(self) -> list[str]:
        """Arguments that hold the planes of the value."""
        pairs = any(c.value is not None for c in halves(self.scan)[1].columns)
        return ["v", "v_im"] if pairs else ["v"]

    @property
    def tokens(self) -> list[str]:
        """Arguments `[B, L, ...]` besides the decay's."""
        return ["q", "k", *self.values]

    @property
    def decays(self) -> list[str]:
        """Arguments that give log λ."""
        return ["g", "phase"]

    @property
    def planes(self) -> tuple[str, ...]:
        """What the names of the outputs' planes end with: of the real one alone, nothing."""
        return ("",) if self.scan.real else SUFFIXES

    @property
    def declined(self) -> str:
        """Why no kernel runs, in an operator."""
        return "_unfit(v, S, mode, 2 * S.shape[3])"

    @property
    def kept(self) -> list[str]:
        """What of the forward operator's outputs its gradient takes."""
        return []

    @property
    def costs(self) -> tuple[KernelCost, ...]:
        """What the kernels cost."""
        return self.rotated.costs

    @property
    def joined_cotangent(self) -> str:
        """Text of the gradient of a complex output, of its planes."""
        return "do.to(_field(do.dtype))" if self.scan.real else super().joined_cotangent

    def narrowed(self, o: str, like: str) -> str:
        """Text of the torch form's outputs in a dtype."""
        return f"{o}.real.to({like}, copy=True)" if self.scan.real else super().narrowed(o, like)

    def register_forward(self) -> str:
        """Registers the forward operator."""
        at = [self.leaves.index(self.like)] * len(self.planes)
        outputs = ", ".join(map(str, [*at, len(self.leaves) - 1]))
        return self._register("forward", f"({outputs})")

    # --- the torch form --------------------------------------------------------------------------

    @property
    def gates_meaning(self) -> str:
        """Docstring of the torch form of what the operators take."""
        return '"""Query, key, value, log λ, as complex numbers; 0 at tokens that do not count."""'

    @property
    def widened(self) -> list[str]:
        """Arguments that are computed with, not passed on."""
        return self.tokens

    @property
    def torch_gates(self) -> Statements:
        """The features, in torch, and what complex numbers are."""
        lines = super().torch_gates.lines
        return Statements((*lines, "    field = _field(dtype)"), tuple(self.gated_results))

    @property
    def gated_results(self) -> list[str]:
        """Texts of the results of the features' torch form: the arguments of the plain scan."""
        names = self._in_torch
        q, k = "read" if "read" in names else "q", "key" if "key" in names else "k"
        v = "torch.complex(v, v_im)" if len(self.values) > 1 else "v.to(field)"
        g = "_kept(torch.complex(g, phase), counts)"
        return [f"{q}.to(field)", f"_kept({k}, counts).to(field)", v, g]

    @property
    def pulled(self) -> list[str]:
        """Arguments of the features' gradient: those of the plain scan's."""
        return ["dq", "dk", "dv", "dg"]

    @property
    def pull_lines(self) -> list[str]:
        """Statements of the features' gradient."""
        lines = [*self.taken([], ["dk", "dg"]), f"{' ' * 8}dq, dk = dq.real, dk.real"]
        return [*lines, *(line for _, back in self._in_torch.values() for line in back.lines)]

    @property
    def pulled_results(self) -> list[str]:
        """Gradients of all arguments but the state."""
        back = {name: made.results for name, (_, made) in self._in_torch.items()}
        q, k = (
            back["read"][0] if "read" in back else "dq",
            back["key"][0] if "key" in back else "dk",
        )
        v = "*_planes(dv, dtype)" if len(self.values) > 1 else "dv.real.to(dtype)"
        return [f"{q}.to(dtype)", f"{k}.to(dtype)", v, "*_planes(dg, g.dtype)"]

    # --- launches --------------------------------------------------------------------------------

    @property
    def given_planes(self) -> str:
        """The planes of the value, as a tuple."""
        return f"({', '.join(self.values)}{',' if len(self.values) == 1 else ''})"

    @property
    def given_cotangents(self) -> str:
        """The planes of the output's gradient, as a tuple."""
        names = self.in_planes("do")
        return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def kernels(
    s: Skeleton, scan: Scan, features: PrologueEpilogue, arrays: dict[str, Buffer]
) -> PhasedKernels:
    """Returns what the templates are filled with.

    Args:
        s: the scan as the torch form sees it.
        scan: the scan of pairs, with the leaves of its features.
        features: the features.
        arrays: buffers by name, those of the features' leaves too.
    """
    return PhasedKernels(
        scan, s.adjoint, s.suffix, s.family, arrays, s.shared, features=features, plain_scan=s
    )
