"""Statements of an operator's torch form around the scan that its gates or features feed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Behind:
    """Texts of what stands behind the plain scan, and of its gradient; of a bare scan none.

    Attributes:
        apart: what the gates give besides what the scan takes.
        undone_by: what of that the gradient needs, or `_`.
        taken: what the scan's outputs and state are called.
        finished, finished_plainly: statements behind that, in the operator, and in the plain loop
            over time.
        output, output_of_plain: what the operator returns ahead of the state, and what the loop
            does; empty for what the scan gives.
        kept: what the operator returns behind the state.
        undone: statements ahead of the scan's gradient.
        cotangent: what that takes for the gradient of the scan's outputs.
        pulled: what the gates' gradient takes besides the scan's.
        state: the gradient of the state.
    """

    apart: str = ""
    undone_by: str = "_"
    taken: str = "o, S"
    finished: tuple[str, ...] = ()
    finished_plainly: tuple[str, ...] = ()
    output: str = ""
    output_of_plain: str = ""
    kept: str = ""
    undone: tuple[str, ...] = ()
    cotangent: str = "do"
    pulled: tuple[str, ...] = ()
    state: str = "dS"

    def forward(self, run: str) -> list[str]:
        """Statements of the operator behind its gates; `run` is the scan."""
        return self._ran(run, self.finished, self.output, self.kept, " " * 4)

    def some(self, run: str) -> list[str]:
        """As `forward`, of a scan that gives nothing where no kernel of it runs."""
        lines = [*self._split(self.apart), f"outs = {run}", "if outs is None:", "    return None"]
        if self.output:
            lines += [f"{self.taken} = outs", *self.finished]
            lines.append(f"return {self.output}, S{self.kept}")
        else:
            lines.append("return outs")
        return [" " * 4 + line for line in lines]

    def plain(self, run: str) -> list[str]:
        """Statements of the loop over time that gradients of gradients differentiate."""
        return self._ran(run, self.finished_plainly, self.output_of_plain, "", " " * 12)

    def _ran(
        self, run: str, finished: tuple[str, ...], output: str, kept: str, indent: str
    ) -> list[str]:
        lines = self._split(self.apart)
        if output:
            lines += [f"{self.taken} = {run}", *finished, f"return {output}, S{kept}"]
        else:
            lines.append(f"return {run}")
        return [indent + line for line in lines]

    def backward(self, suffix: str, options: list[str]) -> list[str]:
        """Statements of the gradient's operator behind its gates."""
        arguments = ", ".join(["*gated", "S", self.cotangent, "dS", *options])
        pulled = ", ".join(["*grads", *self.pulled])
        lines = [
            *self._split(self.undone_by),
            *self.undone,
            f"*grads, dS = _backward_ungated{suffix}({arguments})",
            f"return _own((*pull({pulled}), {self.state}))",
        ]
        return [" " * 4 + line for line in lines]

    def _split(self, name: str) -> list[str]:
        return [f"*gated, {name} = gated"] if self.apart else []
