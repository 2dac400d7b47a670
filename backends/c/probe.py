"""Says which C compiler a machine has, for `dsfc doctor`: what modules find out for themselves."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CompilerProbe:
    """The question as `dsfc doctor` asks it; see `dsfc.emit.backend.Probe`."""

    what: str
    program: str


COMPILER = CompilerProbe(
    "C compiler",
    "import json\nfrom dsfc.backends.c.probe import compiler\nprint(json.dumps(compiler()))",
)


_THREADS = """
int threads(void) {
  int count = 0;
#pragma omp parallel reduction(+ : count)
  count++;
  return count;
}
"""


def compiler() -> dict[str, str]:
    """Returns the outcome of `dsfc doctor`, and the compiler or why no kernel in C runs.

    One small function is compiled, with the flags of kernels, unless `DSFC_C=0` forbids that.
    """
    from .runtime import native

    def state(outcome: str, figure: str) -> dict[str, str]:
        return {"outcome": outcome, "figure": figure}

    reason = native._Native("", {}).why_never()
    if reason:
        return state("missing", f"{reason}; torch runs instead")
    try:
        command, version = native._compiler()
        folder = native._cache_folder()
        with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as draft:
            Path(draft, "kernel.c").write_text(_THREADS, encoding="utf-8")
            taken = native._compile(command, native._flags(version), draft)
    except (OSError, native._NoKernels) as e:
        return state("fault", f"{e}; torch runs instead")
    threads = "OpenMP" if "-fopenmp" in taken else "no OpenMP, one thread a kernel"
    return state("ok", f"{' '.join(command)}, {version}; {threads}; kernels in {folder}")
