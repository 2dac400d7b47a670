"""The convolution form: Λ, B and C are fixed, so every output has one kernel K_l = Σ q λ^l k."""

from __future__ import annotations

from dsfc.plan.scan_ir import Factor, RoleScan, ScanDirection

from .skeletons import VARIABLE, Skeleton


class ConvolutionSkeleton(Skeleton):
    """A scan over values `[B, L, C]` with constants `[G, C, N]` and states `[B, C, N]`.

    Heads are flattened to C and keys to N; without keys N is 1 and q and k are 1. G divides B: the
    constants of each group of B / G sequences, 1 but under vmap.
    """

    @property
    def tokens(self) -> list[str]:
        """Read, key and value; only the value varies over time."""
        return ["q", "k", "v"]

    @property
    def varying(self) -> list[str]:
        """Arguments that have an axis of time: the value alone."""
        return ["v"]

    @property
    def real(self) -> bool:
        """Whether values and outputs are real."""
        return self.scan.real or not self.complex

    @property
    def flags(self) -> list[str]:
        """Arguments behind mode and chunk."""
        return ["carry"]

    @property
    def flops_shape(self) -> str:
        """Reads the sizes off the shapes."""
        return "size = v[1] * math.prod(S)"

    @property
    def forward_flops(self) -> str:
        """Operations of the forward pass."""
        return "4 * size" if not self.complex else "16 * size"

    @property
    def backward_flops(self) -> str:
        """Operations of the backward pass."""
        return "12 * size" if not self.complex else "48 * size"

    @property
    def part(self) -> str:
        """What takes the real part of an output."""
        return ".real" if self.scan.real else ""

    def _constant(self, s: RoleScan) -> bool:
        return s.result in (Factor.READ, Factor.KEY)

    @property
    def constant_results(self) -> list[RoleScan]:
        """Role scans whose result is a constant: summed over time."""
        return [s for s in self.adjoint.scans if self._constant(s)]

    @property
    def step_lines(self) -> list[str]:
        """Gradients at one token."""
        lines = []
        for s in self.adjoint.scans:
            state = "states[i + 1]" if s.direction is ScanDirection.FORWARD else "dS"
            x = VARIABLE[s.result]
            if self._constant(s):
                lines.append(f"d{x} = d{x} + {VARIABLE[s.read]}[i].unsqueeze(-1) * {state}")
            else:
                lines.append(f"d{x}.append(({self._read(s)} * {state}).sum(-1){self.part})")
        return lines

    def _read(self, s: RoleScan) -> str:
        return VARIABLE[s.read] if s.read in VARIABLE else "k"

    @property
    def lag_lines(self) -> list[str]:
        """Gradients of the constants from inside a chunk."""
        names = [(f"d{VARIABLE[s.result]}", VARIABLE[s.key]) for s in self.constant_results]
        return [f"{x} = {x} + {key} * sums" for x, key in names]

    @property
    def carried_lines(self) -> list[str]:
        """Gradients of the constants from the states around a chunk."""
        lines = []
        for s in self.constant_results:
            forward = s.direction is ScanDirection.FORWARD
            pair = "past * reads" if forward else "future * writes"
            x = VARIABLE[s.result]
            lines.append(f"d{x} = d{x} + ({pair}).sum((1, 2), keepdim=True)")
        return lines

    def series(self, weight: str) -> str:
        """Text of Σ weight · λ^l over a chunk, its real part where only that is read."""
        return f"_series({weight}, powers, length{', real=True' if self.scan.real else ''})"

    def grouped(self, names: list[str]) -> str:
        """Statements that widen what is constant and split the batch into groups."""
        fixed = ["q", "k", "g"]
        groups = "x.unflatten(0, (g.shape[0], -1))"
        states = [n for n in names if n in ("S", "dS")]
        tokens = [n for n in names if n not in (*fixed, *states)]
        each = ", ".join
        return "\n".join(
            [
                self.widen(fixed + states),
                f"    {each(tokens + states)} = ({groups} for x in ({each(tokens + states)}))",
                "    q, k, g = (x[:, None, None] for x in (q, k, g))",
            ]
        )
