"""Proofs that the kernels of a mixer compute its recurrence."""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.api.pipeline import Compilation
from dsfc.emit.backend import load_backend
from dsfc.kernel_proofs.prove import Status, Verdict, prove
from dsfc.plan.ir import Role
from dsfc.plan.scan_ir import Scan

ASSUMED = """\
A proof is one in real arithmetic, without rounding and overflow, and of a kernel of the kernel IR:
what prints it as C or Triton is tested, not proved. What it proves is that the kernel computes the
recurrence of the plan's scan, h_i = Λ_i h_{i-1} + B_i u_i and y_i = C_i h_i, from any state, on the
arguments of the scan's operator. What computes these arguments is tested beside the definition.
"""
"""The assumptions that every proof of a kernel rests on."""


@dataclass(frozen=True, slots=True)
class KernelProofs:
    """The verdicts on the kernels of one mixer.

    Attributes:
        mixer: name of the mixer.
        backend: whose kernels.
        verdicts: one for each kernel of the kernel IR, in their order.
    """

    mixer: str
    backend: str
    verdicts: tuple[Verdict, ...]

    @property
    def kept(self) -> bool:
        """Whether no kernel is refuted."""
        return all(v.status is not Status.REFUTED for v in self.verdicts)

    def render(self) -> str:
        """Returns the verdicts, and what they rest on, as text."""
        if not self.verdicts:
            return f"{self.mixer}: the {self.backend} backend has no kernel of the kernel IR.\n"
        width = max(len(v.kernel) for v in self.verdicts)
        lines = [f"{self.mixer}, kernels of the {self.backend} backend"]
        lines += [f"  {v.kernel:<{width}}  {v.sentence}" for v in self.verdicts]
        return "\n".join(lines) + "\n\n" + ASSUMED

    def to_json(self) -> dict[str, object]:
        """Returns the verdicts as JSON values."""
        kernels = [
            {
                "name": v.kernel,
                "status": v.status.value,
                "text": v.text,
                "tokens": v.tokens,
                "sizes": dict(v.sizes),
            }
            for v in self.verdicts
        ]
        return {"mixer": self.mixer, "backend": self.backend, "kernels": kernels}


def kernel_proofs(compilation: Compilation, backend: str = "c") -> KernelProofs:
    """Returns the verdicts on the kernels of a mixer, as `dsfc verify --kernels`.

    Args:
        compilation: the mixer.
        backend: whose kernels.

    Raises:
        DiagnosticError: there is no such backend, or the mixer does not compile.
    """
    fused = compilation.fused(backend)
    plan = fused.original
    scans = [k for k in plan.kernels if isinstance(k, Scan)]
    constants = frozenset(b.name for b in plan.arrays if b.role is Role.CONSTANT)
    verdicts = []
    for kernel in load_backend(backend).kernels(fused):
        of = [s for i, s in enumerate(scans, 1) if _is_of(kernel.name, s, i, len(scans))]
        verdicts.append(
            prove(kernel, of[0], constants)
            if len(of) == 1
            else Verdict(kernel.name, Status.UNDECIDED, "its scan is not found by its name")
        )
    return KernelProofs(compilation.mixer.name, backend, tuple(verdicts))


def _is_of(kernel: str, scan: Scan, number: int, count: int) -> bool:
    """Whether a kernel is one of a scan: of several, the names end with its name or its number."""
    directions = ("forward", "backward", "step", "steps")
    ends = ("",) if count == 1 else (f"_{scan.name}", f"_{number}")
    return count == 1 or kernel in {f"{d}{end}" for d in directions for end in ends}
