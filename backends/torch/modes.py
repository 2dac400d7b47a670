"""Which modes a module offers, and from which length on it takes which.

The numbers are measured on a CPU, per skeleton; of a module with several scans the least counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.plan.ir import Form, Plan, Scan

# From how many tokens on the chunked mode is faster than one token after another.
CROSSOVER = {
    Form.MATRIX: 4,
    Form.KEYED: 8,
    Form.SELECTIVE: 4,
    Form.ELEMENTWISE: 128,
    Form.CONVOLUTION: 8,
}
# Tokens per chunk that are fastest.
CHUNK = {
    Form.MATRIX: 64,
    Form.KEYED: 64,
    Form.SELECTIVE: 32,
    Form.ELEMENTWISE: 64,
    Form.CONVOLUTION: 128,
}
# Powers of two: how many numbers the states of the chunks have that are computed at once.
BLOCK = {Form.MATRIX: 17, Form.KEYED: 19, Form.ELEMENTWISE: 16}


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes of a module, as its text names them.

    Attributes:
        legal: names of the modes that the plan allows, in the language's order.
        forms: skeletons of the scans; none where nothing recurs.
        block: power of two, the numbers of a block; 0 where chunks are computed one by one.
    """

    legal: tuple[str, ...]
    forms: frozenset[Form]
    block: int = 0

    @property
    def scans(self) -> bool:
        """Whether anything recurs: without, there is nothing to choose."""
        return bool(self.forms)

    @property
    def crossover(self) -> int:
        """Length in tokens from which `auto` takes the chunked mode; only where anything recurs."""
        return min(CROSSOVER[f] for f in self.forms)

    @property
    def long(self) -> str:
        """What `auto` takes from there on."""
        return "fft" if "fft" in self.legal else "chunked"

    @property
    def whole(self) -> str:
        """The modes that take the sequence as one chunk, as a tuple."""
        found = [f'"{m}"' for m in self.legal if m in ("parallel", "fft")]
        return f"({', '.join(found)}{',' if len(found) == 1 else ''})"

    @property
    def flags(self) -> tuple[str, ...]:
        """What the functional form takes behind mode and chunk."""
        return ("carry",) if Form.CONVOLUTION in self.forms else ()

    @property
    def chunk(self) -> int:
        """Tokens per chunk if not given; only where anything recurs."""
        return min(CHUNK[f] for f in self.forms)

    @property
    def default_chunk(self) -> str:
        """Default of the argument `chunk`."""
        return "CHUNK" if self.scans else "64"

    @property
    def items(self) -> str:
        """The items of the module's tuple `MODES`."""
        texts = ", ".join(f'"{m}"' for m in self.legal)
        return texts + ("," if len(self.legal) == 1 else "")

    @property
    def listed(self) -> str:
        """The modes in a docstring's sentence."""
        return ", ".join(self.legal)

    @property
    def choices(self) -> str:
        """What the argument `mode` may be, in a docstring's sentence."""
        *first, last = ["`auto`", *(f"`{m}`" for m in self.legal)]
        return f"{', '.join(first)} or {last}"


def modes(plan: Plan) -> Modes:
    """Returns the modes of a plan's module."""
    legal = tuple(m.name for m in plan.modes if m.legal)
    scans = [k for k in plan.kernels if isinstance(k, Scan)]
    block = min((BLOCK[s.form] for s in scans if s.decay and s.form in BLOCK), default=0)
    return Modes(legal, frozenset(s.form for s in scans), block)
