"""Which modes a module offers, and which it takes if none is named: the one of least time.

Time is predicted at every call: of what `cost.py` counts, each call of an operator, each
operation and each word moved takes what the table of machines says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsfc.expr.build import ONE, num, prim, rewrite
from dsfc.expr.text import text
from dsfc.expr.tree import Div, Expr, Field, Num, Param, Prim
from dsfc.plan.ir import Mode, Plan
from dsfc.plan.modes import MODES
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Form, Scan
from dsfc.plan.sizes import BATCH, LENGTH
from dsfc.plan.sizes import CHUNK as TOKENS

from .cost import counts_of
from .counts import attention_counts, pair_counts, stepped_counts
from .forms.table import FORMS
from .layout import WIDTH, literals, tuple_text


@dataclass(frozen=True, slots=True)
class Machine:
    """What a type of device takes, in seconds.

    Attributes:
        call: per call of an operator of torch, views too.
        operation: per operation in products, in float32.
        word: per number moved, in float32.
        source: where that is from.
    """

    call: float
    operation: float
    word: float
    source: str


MACHINES = {
    # By `python -m benchmarks.calibrate`, on one thread of a shared two-core AMD EPYC, torch 2.13.
    "cpu": Machine(2.0e-6, 2.2e-11, 1.6e-10, "measured 2026-11-22"),
    # Nothing was measured: eager launches take 5 to 10 µs and views 1 to 2; an A100 is sold with
    # 19.5 TFLOP/s in float32 and 1.6 to 2 TB/s; half of the former is taken.
    "cuda": Machine(5.0e-6, 1.0e-13, 2.0e-12, "assumed"),
}
"""By type of device; any other counts as `cuda`."""


EXACT = "exact"
"""The mode in which bits depend on a sequence alone, not on its cuts or what is beside it."""


@dataclass(frozen=True, slots=True)
class CostText:
    """What scans of one form cost, as the module's text counts it.

    Attributes:
        form: the form.
        scans: the scans.
        legal: names of the modes.
    """

    form: Form
    scans: tuple[Scan | Attention | AllPairs | Recurrence, ...]
    legal: tuple[str, ...]

    @property
    def shape(self) -> str:
        """Names of the length and of the sizes of the operator's state, as targets."""
        return FORMS[self.form].layout.shape

    @property
    def tokens(self) -> str:
        """How many tokens, heads and batch entries a call has together."""
        return "B * L * h" if " h" in self.shape else "B * L * math.prod(axes)"

    @property
    def rows(self) -> Iterator[str]:
        """Items of the table: calls of each mode, operations and words per token and head."""
        names = self.shape.split(", ")
        keys = Param("n", frozenset()) if "n" in names else ONE
        channels = Param("p", frozenset()) if "p" in names else ONE
        scans = [s for s in self.scans if isinstance(s, Scan)]
        stepped = [s for s in self.scans if isinstance(s, Recurrence)]
        paired = [s for s in self.scans if isinstance(s, AllPairs)]
        for mode in self.legal:
            if stepped:
                operator_counts = max(map(stepped_counts, stepped), key=str)
            elif paired:
                operator_counts = max((pair_counts(s, mode) for s in paired), key=str)
            elif scans:
                scan = max(scans, key=lambda s: (s.decay is not None, s.field is Field.COMPLEX))
                operator_counts = counts_of(scan, mode, keys, channels)
            else:
                operator_counts = attention_counts(mode, keys, channels)
            columns = operator_counts.calls, operator_counts.operations, operator_counts.words
            counts = [_python(e) for e in columns]
            line = f'        "{mode}": ({", ".join(counts)}),'
            if len(line) <= WIDTH:
                yield line
                continue
            yield f'        "{mode}": ('
            yield from (f"            {count}," for count in counts)
            yield "        ),"


_LOG_2 = prim("log", num(2))
_LETTERS = {BATCH: "B", LENGTH: "L", TOKENS: "C"}


def _python(count: Expr) -> str:
    """A count as Python."""

    def rule(e: Expr) -> Expr | None:
        if isinstance(e, Param) and e in _LETTERS:
            return Param(_LETTERS[e], frozenset())
        if isinstance(e, Num) and e.value.denominator != 1:
            return Param(f"{e.value.numerator} / {e.value.denominator}", frozenset())
        if isinstance(e, Div) and e.den == _LOG_2:
            assert isinstance(e.num, Prim)
            return Param(f"math.log2({text(e.num.args[0])})", frozenset())
        return None

    return text(rewrite(count, rule))


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes of a module, as its text names them.

    Attributes:
        all: every mode of the language, in its order, with the plan's reasons.
        scans: the scans.
        attentions: the kernels that weigh all tokens.
        paired: the sums over all pairs of tokens.
        stepped: the recurrences.
        causal: whether no output needs a token to come.
    """

    all: tuple[Mode, ...]
    scans: tuple[Scan, ...]
    attentions: tuple[Attention, ...] = ()
    paired: tuple[AllPairs, ...] = ()
    stepped: tuple[Recurrence, ...] = ()
    causal: bool = True

    @property
    def operators(self) -> bool:
        """Whether the module has operators of its own: anything recurs, or sums over all pairs."""
        return bool(self.scans or self.stepped or self.paired)

    @property
    def legal(self) -> tuple[str, ...]:
        """Names of the modes that the plan allows."""
        return tuple(m.name for m in self.all if m.legal)

    @property
    def ordered(self) -> tuple[str, ...]:
        """Names of the modes of the layer, whose calls are cut into single tokens of sequences.

        They run another mode at each, and are none of the operators.
        """
        return (EXACT,) if self.causal else ()

    @property
    def offered(self) -> str:
        """What `forward` takes besides `auto`, as an expression."""
        return "(*MODES, _EXACT)" if self.ordered else "MODES"

    @property
    def forms(self) -> tuple[Form, ...]:
        """Skeletons of scans and attention; none where there is nothing to choose."""
        return tuple(dict.fromkeys(s.form for s in self._run))

    @property
    def costs(self) -> list[CostText]:
        """What the scans of each form cost."""
        by_form = {f: tuple(s for s in self._run if s.form is f) for f in self.forms}
        return [CostText(f, scans, self.legal) for f, scans in by_form.items()]

    @property
    def _run(self) -> tuple[Scan | Attention | AllPairs | Recurrence, ...]:
        """All that has modes."""
        return (*self.scans, *self.attentions, *self.paired, *self.stepped)

    @property
    def block(self) -> int:
        """Power of two, how many numbers a block has; 0 where chunks are computed one by one."""
        blocked = (s for s in self.scans if s.decay or s.form is not Form.ELEMENTWISE)
        return min((b for s in blocked if (b := FORMS[s.form].block) is not None), default=0)

    @property
    def text(self) -> str:
        """All tables of costs: they decide an import."""
        return "\n".join(line for c in self.costs for line in (c.tokens, *c.rows))

    @property
    def rates(self) -> str:
        """The table of machines."""
        items = (f'"{n}": ({m.call:g}, {m.operation:g}, {m.word:g})' for n, m in MACHINES.items())
        return f"{{{', '.join(items)}}}"

    @property
    def sources(self) -> str:
        """Where the table's numbers are from."""
        return ", ".join(f"{name} {m.source}" for name, m in MACHINES.items())

    @property
    def unpacked(self) -> tuple[str, ...]:
        """Legal modes whose sequences start where their rows do: neither packed nor masked."""
        whole = {row.name for row in MODES if not row.resets}
        return tuple(name for name in self.legal if name in whole)

    @property
    def reasons(self) -> list[str]:
        """Why each mode is legal or not, then gauge and spec: literals that make lines of text."""
        words = {True: "legal", False: "not legal"}
        out = []
        if self.legal == ("recurrent",):
            why = next(m.why for m in self.all if not m.legal)
            out = ['f"legal: recurrent, {length:,} steps; "', *_literals(f"no faster form: {why}")]
            return self._with_tail(out)
        for legal, title in words.items():
            reasons = "; ".join(f"{m.name}: {m.why}" for m in self.all if m.legal is legal)
            if reasons:
                out += _literals(f"{title}: {reasons}")
        if self.unpacked:
            names = ", ".join(self.unpacked)
            out += _literals(
                f"not packed or masked: {names}, since Λ and B then depend on the token"
            )
        if self.causal and len(self.legal) > 1:
            out += _literals(
                "later tokens that are finite change no earlier output"
                f"{', but in fft by rounding' * ('fft' in self.legal)}; "
                "NaN and infinity change none in recurrent only"
            )
        return self._with_tail(out)

    def _with_tail(self, out: list[str]) -> list[str]:
        last = f"f{out[-1][:-1]}{_TAIL}"
        return [*out[:-1], last] if len(last) <= WIDTH - 12 else [*out, f'f"{_TAIL}']

    @property
    def whole(self) -> str:
        """The modes that take the sequence as one chunk, as a tuple."""
        names = [f'"{m}"' for m in self.legal if m in ("parallel", "fft")]
        return tuple_text(names)

    @property
    def flags(self) -> tuple[str, ...]:
        """What the functional form takes behind mode and chunk."""
        return ("carry",) if Form.CONVOLUTION in self.forms else ()

    @property
    def chunk(self) -> int:
        """Tokens per chunk if not given; only where anything recurs."""
        return min(c for f in self.forms if (c := FORMS[f].chunk) is not None)

    @property
    def default_chunk(self) -> str:
        """Default of the argument `chunk`."""
        return "CHUNK" if self.operators else "64"

    @property
    def items(self) -> str:
        """The items of the module's tuple `MODES`."""
        texts = ", ".join(f'"{m}"' for m in self.legal)
        return texts + ("," if len(self.legal) == 1 else "")

    @property
    def choices(self) -> str:
        """What the argument `mode` may be, in a docstring's sentence."""
        *first, last = ["`auto`", *(f"`{m}`" for m in (*self.legal, *self.ordered))]
        return f"{', '.join(first)} or {last}"


_TAIL = 'gauge: {State.gauge}; spec: {SPEC}"'


def modes(plan: Plan) -> Modes:
    """Returns the modes of a plan's module."""
    scans = tuple(k for k in plan.kernels if isinstance(k, Scan))
    attentions = tuple(k for k in plan.kernels if isinstance(k, Attention))
    paired = tuple(k for k in plan.kernels if isinstance(k, AllPairs))
    stepped = tuple(k for k in plan.kernels if isinstance(k, Recurrence))
    return Modes(plan.modes, scans, attentions, paired, stepped, plan.causal)


def _literals(line: str) -> list[str]:
    """One line of text as literals in the parentheses of a method, with an end of line."""
    *first, last = literals(line, WIDTH - 14)
    return [*first, f'{last[:-1]}\\n"']
