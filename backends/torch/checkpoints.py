"""The method of a layer that keeps the states on the way through a sequence."""

from __future__ import annotations

from dataclasses import dataclass

from .layout import tuple_text, wrapped
from .modes import Modes
from .signature import Signature


@dataclass(frozen=True, slots=True)
class CheckpointsText:
    """What `layer_checkpoints.py.j2` is filled with.

    Attributes:
        signature: the module's names.
        modes: the module's modes.
        causal: whether there are states on the way.
    """

    signature: Signature
    modes: Modes
    causal: bool

    @property
    def definition(self) -> str:
        """The `def` line."""
        inputs = [f"{n}: Tensor" for n in self.signature.input_names]
        options = [
            "state: State | None = None",
            "*",
            "every: int",
            "mask: Tensor | None = None",
            'mode: str = "auto"',
            f"chunk: int = {self.modes.default_chunk}",
        ]
        result = "tuple[Tensor, tuple[State, ...]]" if self.causal else "tuple[Tensor, Any]"
        return wrapped("def checkpoints", ["self", *inputs, *options], f" -> {result}:", "    ")

    @property
    def returns(self) -> str:
        """What the docstring says of the result."""
        output = self.signature.output
        return (
            f"{output.name}, {output.meaning}, and the states after `every` tokens, twice as many, "
            "and so on, the last after all L."
        )

    @property
    def call(self) -> list[str]:
        """Checks the arguments, and mixes segments."""
        inputs = self.signature.input_names
        options = ["mode=mode", "chunk=chunk", "return_state=True"]
        passed = [tuple_text(inputs), "state", "mask", "every"]
        return [
            "        _tensors(mask=mask)",
            wrapped("self._check", [*inputs, "state", "None"], "", "        "),
            wrapped("run = partial", ["self", *options], "", "        "),
            wrapped("return _checkpoints", ["run", *passed], "", "        "),
        ]
