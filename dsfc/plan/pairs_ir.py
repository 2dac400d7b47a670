"""What weighs or sums all pairs of tokens: nodes of the kernel graph; see `dsfc.plan.ir`."""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.expr.over_time import Relation
from dsfc.expr.tree import Axis, Expr
from dsfc.plan.scan_ir import Form


@dataclass(frozen=True, slots=True)
class Attention:
    """output_i = Σ_{j ≤ i} w_ij value_j / Σ_{j ≤ i} w_ij, w_ij = exp(scale Σ_keys query_i key_j).

    The registers of `key`, `value` and `present` keep every token. Its gradient is the platform's.

    Attributes:
        heads: axes that enumerate independent weights.
        keys: axes that a score sums over.
        channels: the other axes of the value.
        scale: a number, over sizes.
        query: buffer over some of heads ∪ keys.
        key: the same; kept.
        value: buffer over some of heads ∪ channels; kept.
        present: buffer without axes, 1 at every token; kept: 0 where there was none.
        output: buffer over heads ∪ channels.
    """

    heads: tuple[Axis, ...]
    keys: tuple[Axis, ...]
    channels: tuple[Axis, ...]
    scale: Expr
    query: str
    key: str
    value: str
    present: str
    output: str

    @property
    def form(self) -> Form:
        """The skeleton that it needs, as that of a scan."""
        return Form.ATTENTION

    @property
    def kept(self) -> tuple[str, ...]:
        """Buffers whose values at all earlier tokens it reads."""
        return self.key, self.value, self.present


@dataclass(frozen=True, slots=True)
class PairLeaf:
    """What a pair of tokens has of one of them, or of none.

    Attributes:
        name: in the summand, unique in the plan.
        buffer: what it is a value of.
        axes: of the buffer.
    """

    name: str
    buffer: str
    axes: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class PairGradient:
    """The gradient of a leaf at one pair of tokens, to be summed over the pairs that it is in."""

    leaf: str
    value: Expr


@dataclass(frozen=True, slots=True)
class AllPairs:
    """output_i = Σ_j body(queries_i, keys_j, fixed, i - j), over the j in a relation to i - offset.

    It runs a sum that has no finite state and is no softmax attention. The registers of `keys` and
    `present` keep every token of a sum over the past; one over tokens to come has none.

    Attributes:
        output: buffer over `axes`.
        axes: canonical order.
        relation: of j to i - offset.
        offset: tokens.
        queries: leaves of token i.
        keys: leaves of token j; kept.
        fixed: leaves that are the same at every token.
        lag: name of i - j in the summand; None where nothing reads it.
        present: buffer without axes, 1 at every token; kept: 0 where there was none.
        body: the summand; reads leaves and the lag as `Ref(name, Now(0))`.
        bar: name of the gradient of the output at token i.
        gradients: derived; they read leaves, the lag and the bar.
        why: the reason why there is no finite state, as a clause; for messages.
    """

    output: str
    axes: tuple[Axis, ...]
    relation: Relation
    offset: int
    queries: tuple[PairLeaf, ...]
    keys: tuple[PairLeaf, ...]
    fixed: tuple[PairLeaf, ...]
    lag: str | None
    present: str
    body: Expr
    bar: str
    gradients: tuple[PairGradient, ...]
    why: str

    @property
    def form(self) -> Form:
        """The skeleton that it needs, as that of a scan."""
        return Form.PAIRS

    @property
    def later(self) -> bool:
        """Whether it sums over tokens to come."""
        return self.relation in (Relation.FROM, Relation.AFTER)

    @property
    def bound(self) -> int:
        """Least i - j of the pairs that count; the largest where it sums over later tokens."""
        strict = self.relation in (Relation.BEFORE, Relation.AFTER)
        return self.offset + (-1 if self.later else 1) * strict

    @property
    def leaves(self) -> tuple[PairLeaf, ...]:
        """All leaves, those of token i first, then those of token j."""
        return self.queries + self.keys + self.fixed

    @property
    def kept(self) -> tuple[str, ...]:
        """Buffers whose values at all earlier tokens it reads."""
        return () if self.later else (*(x.buffer for x in self.keys), self.present)
