"""The fused plan: a plan, and what the kernel of each scan computes besides its recurrence.

    FusedPlan = original plan + plan without what kernels compute + a prologue or a prologue and
                epilogue for each scan that has kernels

A scan that is bound by memory reads only leaves, and only gradients of leaves are written. A
`Prologue` is all that is computed before the recurrence of a scan without products of keys; a
`PrologueEpilogue` is what a matrix scan computes as it loads queries, keys and values and as it
stores outputs. `dsfc.fused.expand` writes a fused plan out as a plan again: that is its meaning.

A complex scan with kernels is a scan of pairs here: its values are `cplx` of two real ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dsfc.expr.build import ZERO, is_one, prim
from dsfc.expr.tree import Expr, Field, Prim, Ref
from dsfc.plan.ir import Plan
from dsfc.plan.scan_ir import Form, Scan

VALUE_BAR = "value_bar"
DECAY_BAR = "log_decay_bar"
OUT_BAR = "out_bar"
"""Names under which gradients read those of a scan's value, of its log λ and of its output."""

FEATURE_BAR = "feature_bar"
"""Name of the gradient of a computed value, as the gradients of its leaves refer to it."""

SUFFIXES = ("_re", "_im")
"""Behind the names of a real and of an imaginary part."""


def rate_bar(leaf: str) -> str:
    """Returns the name under which gradients read that of a leaf of log λ."""
    return f"{leaf}_bar"


def real_imag(e: Expr) -> tuple[Expr, ...]:
    """Returns the parts of a value that is real, or written as `cplx` of two: one or two."""
    if isinstance(e, Prim) and e.name == "cplx":
        return e.args
    return (e,)


def joined(parts: Iterable[Expr]) -> Expr:
    """Returns the value that real and imaginary parts make."""
    first, *rest = parts
    return prim("cplx", first, *rest) if rest else first


def barred(e: Expr, bar: str) -> list[tuple[Expr, str]]:
    """Returns the parts of a value, and the names under which gradients read theirs."""
    parts = real_imag(e)
    names = [f"{bar}{suffix}" for suffix in SUFFIXES] if len(parts) > 1 else [bar]
    return list(zip(parts, names, strict=True))


def is_paired(scan: Scan) -> bool:
    """Whether a scan is complex, and its columns are the parts of its states."""
    (*_, last) = scan.columns
    return scan.field is Field.COMPLEX and any(
        c.state == last.state and c is not last for c in scan.columns
    )


def halves(scan: Scan) -> tuple[Scan, Scan]:
    """Returns a scan of pairs as two, one of the real parts and one of the imaginary ones."""
    count = len(scan.columns) // 2
    first, second = scan.columns[:count], scan.columns[count:]
    return replace(scan, columns=first), replace(scan, columns=second)


def is_entrywise(scan: Scan) -> bool:
    """Whether out_i = h_i: an elementwise scan, or a convolution without keys, of a constant λ."""
    return scan.form is Form.ELEMENTWISE or (scan.form is Form.CONVOLUTION and not scan.keys)


def is_split(scan: Scan) -> bool:
    """Whether a scan is a complex selective one whose log λ is computed of real leaves."""
    paired = scan.decay is not None and len(real_imag(scan.decay.expr)) == 2
    return scan.field is Field.COMPLEX and scan.form is Form.SELECTIVE and paired


@dataclass(frozen=True, slots=True)
class RealLeaf:
    """A leaf of log λ in real numbers.

    Attributes:
        leaf: its buffer.
        of: the leaf that the plan had, which it is a part of, or which is real already.
        part: `re` or `im`.
    """

    leaf: str
    of: str
    part: str


@dataclass(frozen=True, slots=True)
class Prologue:
    """What drives a scan, as expressions over leaves with the axes of its output.

    Attributes:
        scan: name of the scan.
        tokens: buffers that vary over time.
        constants: buffers that do not, and parameters.
        value: what is added to the state; of a selective scan, the factor without key. It is real,
            and so are log λ and λ; of a scan of pairs each is `cplx` of two real ones.
        log_decay: log λ; of a selective scan over the leaves of its decay, not those of the
            prologue.
        decay: λ; equal to exp(log_decay), in a form of fewer functions where there is one.
        named: (name, value) of the buffers that are not stored any more, in order.
        gradients: one per leaf, `tokens` first, over the leaves, `Ref("value_bar")` and
            `Ref("log_decay_bar")` (of pairs one for each part, with its suffix), or `rate_bar` of
            each of `rates` and `Ref("out_bar")`; those of `constants` are to be summed over time.
        rates: (leaf of log λ, value) of a selective scan, where the value is computed inside.
        added: to the output, of a selective scan.
        parts: leaves of log λ of a complex selective scan, and what they are of those of the plan.
    """

    scan: str
    tokens: tuple[str, ...]
    constants: tuple[str, ...]
    value: Expr
    log_decay: Expr
    decay: Expr
    named: tuple[tuple[str, Expr], ...]
    gradients: tuple[Expr, ...]
    rates: tuple[tuple[str, Expr], ...] = ()
    added: Expr = ZERO
    parts: tuple[RealLeaf, ...] = ()

    @property
    def leaves(self) -> tuple[str, ...]:
        """All leaves, in the order of the gradients."""
        return self.tokens + self.constants


@dataclass(frozen=True, slots=True)
class Entrywise:
    """A value that a kernel computes of leaves, entry by entry.

    Attributes:
        leaves: buffers of its axes.
        value: over the leaves.
        gradients: of the leaves, over them and `Ref("feature_bar")`.
    """

    leaves: tuple[str, ...]
    value: Expr
    gradients: tuple[Expr, ...]

    @property
    def plain(self) -> bool:
        """Whether the value is a buffer as it stands."""
        return isinstance(self.value, Ref)


@dataclass(frozen=True, slots=True)
class PrologueEpilogue:
    """What the kernels of a matrix scan compute besides its recurrence.

    Attributes:
        scan: its name.
        read: φ, of one leaf.
        key: ψ, of one leaf.
        weight: w, a number a token and head that all values have as a factor; None for 1.
        normaliser: η, a number a token and head that divides the output; None for 1.
        running: whether η is computed of what is read of a column of the state by itself: of
            Σ φ(q) · ψ(k) w in the denominator of linear attention.
        factor: of every output, a number over sizes of keys.
    """

    scan: str
    read: Entrywise
    key: Entrywise
    weight: Entrywise | None
    normaliser: Entrywise | None
    factor: Expr
    running: bool = False

    @property
    def computed(self) -> tuple[Entrywise, ...]:
        """All that is computed entry by entry."""
        every = (self.read, self.key, self.weight, self.normaliser)
        return tuple(e for e in every if e is not None)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Leaves of one number a token and head: those of the weight, then of the normaliser."""
        read = None if self.running else self.normaliser
        return tuple(n for f in (self.weight, read) if f is not None for n in f.leaves)

    @property
    def plain(self) -> bool:
        """Whether the scan computes nothing but its recurrence."""
        alone = self.weight is None and self.normaliser is None and is_one(self.factor)
        return self.read.plain and self.key.plain and alone


@dataclass(frozen=True, slots=True)
class FusedPlan:
    """A plan without what the kernels of its scans compute, and that, by scan.

    A scan with a prologue reads its leaves instead of its value and log λ, and the leaves of its
    decay are those that are computed in the precision of a decay. A scan with neither a prologue
    nor a prologue and epilogue has no kernels of this kind.

    Attributes:
        original: the plan that was fused.
        plan: without the kernels that scans compute inside, and with one for each leaf that had
            none.
        prologues: of scans without products of keys, in order.
        matrices: of matrix scans, in order.
    """

    original: Plan
    plan: Plan
    prologues: tuple[Prologue, ...] = ()
    matrices: tuple[PrologueEpilogue, ...] = ()

    @property
    def fused_scans(self) -> tuple[str, ...]:
        """Names of the scans that have a prologue, or a prologue and epilogue."""
        return (*(p.scan for p in self.prologues), *(m.scan for m in self.matrices))

    @property
    def scans(self) -> dict[str, Scan]:
        """The scans, with the leaves of what their kernels compute, by name."""
        return {k.name: k for k in self.plan.kernels if isinstance(k, Scan)}

    def prologue(self, scan: str) -> Prologue | None:
        """Returns the prologue of a scan; None where it has none.

        Args:
            scan: its name.
        """
        return next((p for p in self.prologues if p.scan == scan), None)

    def prologue_epilogue(self, scan: str) -> PrologueEpilogue | None:
        """Returns the prologue and epilogue of a matrix scan; None where it has none.

        Args:
            scan: its name.
        """
        return next((p for p in self.matrices if p.scan == scan), None)
