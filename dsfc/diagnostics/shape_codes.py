"""Codes of shapes: which axes the four products, sums and maps take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsfc.diagnostics.report import Diagnostic, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeAdd(Diagnostic):
    """Two summands have different axes.

    `+` and `-` need equal axes on both sides; only a value without axes may be added to any
    other. A silent broadcast in a sum is the one place where a missing axis and a mistake look
    the same.

    ```dsf wrong
    mixer shaped extends qkv {
      x = q + sum[n](q)
      y = sum[n](x)
    }
    ```

    The broadcast, written out:

    ```dsf right
    mixer shaped extends qkv {
      x = q + sum[n](q) ⊗ ones[n]
      y = sum[n](x)
    }
    ```
    """

    code: ClassVar[str] = "E-SHAPE-ADD"
    template: ClassVar[str] = "cannot add axes {left} and {right}; {repair}"
    left: str
    right: str
    repair: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeMul(Diagnostic):
    """Neither factor of `*` has all axes of the other.

    `*` and `/` are elementwise: the axes of one side contain those of the other. Gates and decays
    may be smaller than what they scale.

    ```dsf wrong
    mixer shaped extends qkv {
      state S : h × n × p
      S = S[i-1] + k * v
      y = q · S
    }
    ```

    The outer product:

    ```dsf right
    mixer shaped extends qkv {
      state S : h × n × p
      S = S[i-1] + k ⊗ v
      y = q · S
    }
    ```
    """

    code: ClassVar[str] = "E-SHAPE-MUL"
    template: ClassVar[str] = (
        "`*` is elementwise, but `{left}` has {left_axes} and `{right}` has {right_axes};"
        " for the outer product write `⊗`{instead}"
    )
    left: str
    left_axes: str
    right: str
    right_axes: str
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeOuter(Diagnostic):
    """Both sides of `⊗` have the same axis.

    The outer product joins different axes. Axes declared `heads` may be shared: they are batches.

    ```dsf wrong
    mixer shaped extends qkv {
      x = q ⊗ k
      y = sum[n](x)
    }
    ```

    Elementwise:

    ```dsf right
    mixer shaped extends qkv {
      x = q * k
      y = sum[n](x)
    }
    ```
    """

    code: ClassVar[str] = "E-SHAPE-OUTER"
    template: ClassVar[str] = "`⊗` needs different axes, but both sides have {shared}; {repair}"
    shared: str
    repair: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeDot(Diagnostic):
    """The sides of `·` share no axis, or several.

    `a · b` multiplies elementwise and sums over the one axis that both have; axes declared
    `heads` are not summed over. If several are shared, say which: `sum[n](a * b)`.

    ```dsf wrong
    mixer contracted {
      dims d, n
      input u : d
      param w, x : d × n ~ normal(0, 1)
      y = u * (w · x)
    }
    ```

    Say which axis is summed over:

    ```dsf right
    mixer contracted {
      dims d, n
      input u : d
      param w, x : d × n ~ normal(0, 1)
      y = u * sum[n](w * x)
    }
    ```
    """

    code: ClassVar[str] = "E-SHAPE-DOT"
    template: ClassVar[str] = (
        "`·` contracts the one axis both sides share, but {left_axes} and {right_axes} "
        "share {shared}; {repair}"
    )
    left_axes: str
    right_axes: str
    shared: str
    repair: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeMap(Diagnostic):
    """A linear map is applied to a value without its axes.

    `W x` sums over the axes on the left of `->` and brings in those on the right. The value must
    have all of the former and none of the latter, apart from the axes of `each`.

    ```dsf wrong
    mixer shaped extends qkv {
      y = W_V q
    }
    ```

    A map from the axes of `q`:

    ```dsf right
    mixer shaped extends qkv {
      param W : h × n -> d
      y = W q
    }
    ```
    """

    code: ClassVar[str] = "E-SHAPE-MAP"
    template: ClassVar[str] = "`{map}` takes {takes}, but got {got}{instead}"
    map: str
    takes: str
    got: str
    instead: str = ""

    @property
    def subject(self) -> str | None:
        """Where the declaration of the argument is to be changed: that declaration."""
        return self.instead if self.got == "{}" and self.instead else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Juxtaposition(Diagnostic):
    """Two names stand side by side, and the first is no linear map.

    Juxtaposition `W x` applies a declared map. Every other product has a sign: `*` elementwise,
    `⊗` outer, `·` contraction.

    ```dsf wrong
    mixer shaped extends qkv {
      y = sum[n](q k)
    }
    ```

    With the sign:

    ```dsf right
    mixer shaped extends qkv {
      y = sum[n](q * k)
    }
    ```
    """

    code: ClassVar[str] = "E-JUXTA"
    template: ClassVar[str] = "`{name}` is {what}{repair}"
    name: str
    what: str = "not a map"
    repair: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeSum(Diagnostic):
    """A sum, mean or norm runs over an axis that its operand lacks.

    `sum[n](x)` needs the axis n in x; the same holds for `mean`, `softmax`, `l2norm` and
    `rmsnorm`.

    ```dsf wrong
    mixer shaped extends qkv {
      y = sum[p](q)
    }
    ```

    An axis that is there:

    ```dsf right
    mixer shaped extends qkv {
      y = sum[n](q)
    }
    ```
    """

    code: ClassVar[str] = "E-SHAPE-SUM"
    template: ClassVar[str] = "`{operand}` has no axis `{axis}`; its axes are {axes}"
    operand: str
    axis: str
    axes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeDiv(Diagnostic):
    """A divisor has axes that the dividend lacks.

    `x / z` is elementwise and keeps the axes of x, so those of z must be among them.

    ```dsf wrong
    mixer shaped extends qkv {
      y = sum[n](q) / k
    }
    ```

    Divide first, then sum:

    ```dsf right
    mixer shaped extends qkv {
      y = sum[n](q / k)
    }
    ```
    """

    code: ClassVar[str] = "E-SHAPE-DIV"
    template: ClassVar[str] = (
        "the divisor has {right_axes}, which is not within {left_axes}; {repair}"
    )
    left_axes: str
    right_axes: str
    repair: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeState(Diagnostic):
    """The update of a state does not have the state's axes.

    A state is declared with all its axes, and its update has exactly those.

    ```dsf wrong
    mixer shaped extends qkv {
      state S : h × n × p
      S = k
      y = q · S
    }
    ```

    With all axes:

    ```dsf right
    mixer shaped extends qkv {
      state S : h × n × p
      S = k ⊗ v
      y = q · S
    }
    ```
    """

    code: ClassVar[str] = "E-SHAPE-STATE"
    template: ClassVar[str] = (
        "the update of `{state}` has axes {got}, but `{state}` has {has}{instead}"
    )
    state: str
    got: str
    has: str
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WideOutput(Diagnostic):
    """The output has all axes of a matrix state (a note, not an error).

    Each token then has as many outputs as the state has entries. Usually a query is meant to be
    contracted with the state, which `·` does and `*` does not.

    ```dsf wrong
    mixer wide extends qkv {
      state S : h × n × p
      S = S[i-1] + k ⊗ v
      y = q * S
    }
    ```

    Contracted:

    ```dsf right
    mixer wide extends qkv {
      state S : h × n × p
      S = S[i-1] + k ⊗ v
      y = q · S
    }
    ```
    """

    code: ClassVar[str] = "N-OUTPUT"
    severity: ClassVar[Severity] = Severity.NOTE
    template: ClassVar[str] = (
        "`{output}` has the axes {axes}, all those of the state `{state}`; to sum over an axis "
        "write `·` or {sums}"
    )
    output: str
    axes: str
    state: str
    sums: str
