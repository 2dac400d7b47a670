"""What operators that compute their gates, or features, have in common, whatever kernels they have.

Gates run in torch where no kernel runs. Their gradient is printed as well: PyTorch shuts
`torch.func` out of what a mode of its dispatch runs, so that no operator may differentiate inside.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from ..torch.layout import WIDTH, wrapped
from ..torch.skeletons import Skeleton

_PULLED = " -> tuple[tuple[Tensor, ...], Callable[..., tuple[Tensor, ...]]]:"


@dataclass(frozen=True)
class GatedKernels(Skeleton):
    """A scan whose operators take what its gates or features read, as `gated_op.py.j2` asks."""

    @property
    @abstractmethod
    def inputs(self) -> list[str]:
        """All arguments but the state."""

    # --- the torch form of the gates -------------------------------------------------------------

    @property
    @abstractmethod
    def gated_results(self) -> list[str]:
        """What the gates' torch form gives the plain scan, and what it does besides."""

    @property
    @abstractmethod
    def pulled(self) -> list[str]:
        """What the gates' gradient takes: gradients of what they give."""

    @property
    @abstractmethod
    def pull_lines(self) -> list[str]:
        """Statements of the gates' gradient."""

    @property
    @abstractmethod
    def pulled_results(self) -> list[str]:
        """Gradients of all arguments but the state."""

    def define_gates(self) -> str:
        """The `def` line of the gates' torch form."""
        params = [*(f"{x}: Tensor" for x in self.inputs), "lengths: Tensor | None"]
        return wrapped(f"def _gates{self.suffix}", params, _PULLED, "")

    def gated(self) -> str:
        """The statement that names what the gates' torch form gives."""
        return _tuple("gated = ", self.gated_results, "    ")

    def define_pull(self) -> str:
        """The `def` line of the gates' gradient."""
        params = [f"{x}: Tensor" for x in self.pulled]
        return wrapped("def pull", params, " -> tuple[Tensor, ...]:", "    ")

    def return_pulled(self) -> str:
        """The `return` statement of the gates' gradient: outputs of an operator, all its own."""
        return _tuple("return ", _apart(self.pulled_results), " " * 8)

    def taken(self, computed: list[str], kept: list[str]) -> list[str]:
        """Statements by which gradients are precise, or 0 at tokens that do not count, or both."""
        indent = " " * 8
        target = ", ".join(computed) if len(computed) > 1 else f"({''.join(computed)},)"
        wide = wrapped(f"{indent}{target} = _accumulate", computed, "", indent, started=True)
        joined = ", ".join(kept)
        if len(kept) == 1:
            zero = f"{indent}{joined} = _kept({joined}, counts)"
        elif kept == computed:
            zero = f"{indent}{joined} = (_kept(x, counts) for x in _accumulate({joined}))"
        else:
            zero = f"{indent}{joined} = (_kept(x, counts) for x in ({joined}))"
        return [*([wide] if computed and kept != computed else []), *([zero] if kept else [])]


def _tuple(head: str, items: list[str], indent: str) -> str:
    """A statement that ends in a tuple."""
    line = f"{indent}{head}{', '.join(items)}{',' if len(items) == 1 else ''}"
    return line if len(line) <= WIDTH else wrapped(head, items, "", indent)


def _apart(texts: Iterable[str]) -> list[str]:
    """Texts of which none is another's array."""
    seen: set[str] = set()
    out = []
    for text in texts:
        out.append(f"{text}.clone()" if text in seen else text)
        seen.add(text)
    return out
