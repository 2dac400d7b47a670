"""Codes of declarations: axes and their sizes, shapes, initialisers, the output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsfc.diagnostics.report import Diagnostic, Severity, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownAxis(Diagnostic):
    """A shape or an index names something that is not an axis.

    Axes are declared by `dims`, in the mixer itself or in one it extends. In a modifier the name
    of its target stands for the target's axes.

    ```dsf wrong
    mixer scaled {
      dims d
      input u : d
      param w : m
      y = w * u
    }
    ```

    Declare the axis, or use one that exists:

    ```dsf right
    mixer scaled {
      dims d
      input u : d
      param w : d
      y = w * u
    }
    ```
    """

    code: ClassVar[str] = "E-AXIS"
    template: ClassVar[str] = "`{owner}`: `{axis}` is not an axis; {known}"
    owner: str
    axis: str
    known: str

    @property
    def subject(self) -> str:
        """The word that is no axis."""
        return self.axis


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisTwice(Diagnostic):
    """A shape has the same axis twice.

    A shape is a set of axes. A matrix from an axis to itself is a linear map, which is applied by
    juxtaposition: `W x`.

    ```dsf wrong
    mixer mixed {
      dims d
      input u : d
      param W : d × d
      y = W u
    }
    ```

    As a map:

    ```dsf right
    mixer mixed {
      dims d
      input u : d
      param W : d -> d
      y = W u
    }
    ```
    """

    code: ClassVar[str] = "E-AXIS-TWICE"
    template: ClassVar[str] = "`{owner} : {shape}` uses the axis `{axis}` twice; {way}"
    owner: str
    shape: str
    axis: str
    way: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Size(Diagnostic):
    """The size of an axis cannot be worked out.

    A size is a number or an expression over the sizes of other axes, without cycles; whether it
    is a positive integer is checked when the module is made.

    ```dsf wrong
    mixer split {
      dims d = p, p = d
      input u : d
      y = u
    }
    ```

    Leave the free sizes free; the user of the module gives them:

    ```dsf right
    mixer split {
      dims d, p = d
      input u : d
      y = u
    }
    ```
    """

    code: ClassVar[str] = "E-DIM"
    template: ClassVar[str] = "the size of the axis `{axis}` {problem}"
    axis: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration(Diagnostic):
    """A declaration says something that its kind cannot have.

    `backward` is for states, `->` for parameters, buffers and abstract maps, `nonzero` and the
    like for real values. States have no initialiser: they start at 0 or at what the caller
    passes.

    ```dsf wrong
    mixer declared {
      dims d
      input u : d backward
      y = u
    }
    ```

    Only a state runs backward:

    ```dsf right
    mixer declared {
      dims d
      input u : d
      state s : d backward
      s = 1/2 * s[i+1] + u
      y = s
    }
    ```
    """

    code: ClassVar[str] = "E-DECL"
    template: ClassVar[str] = "`{name}`: {problem}"
    name: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialiser(Diagnostic):
    """An initialiser cannot be worked out when the module is made.

    A constant expression over sizes, constants and `iota[n]` follows `=`; after `~` it may
    also draw: `uniform(a, b)`, `normal(mean, deviation)`, `log_uniform(a, b)`,
    `orthogonal_chi(scale)`, or take the last values of a sequence along an axis:
    `legs_frequency[n](size)`, `legs_low_rank[n](size)`. The values are finite, and those that
    `positive`, `nonneg`, `unit` or `nonzero` promises.

    ```dsf wrong
    mixer started {
      dims d
      input u : d
      param w : d = normal(0, 1)
      y = w * u
    }
    ```

    A draw stands after `~`:

    ```dsf right
    mixer started {
      dims d
      input u : d
      param w : d ~ normal(0, 1)
      y = w * u
    }
    ```
    """

    code: ClassVar[str] = "E-INIT"
    template: ClassVar[str] = "the initialiser of `{name}` {problem}"
    name: str
    problem: str

    @property
    def subject(self) -> str:
        """What is written, for however many names."""
        return f"{self.span.start} {self.problem}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Diagnostic):
    """A constant depends on something that is no constant.

    Constants are worked out when the spec is read: from numbers, sizes and other constants. What
    depends on a parameter or on tokens is a definition.

    ```dsf wrong
    mixer scaled {
      dims d
      input u : d
      param w : d
      const c = exp(w)
      y = c * u
    }
    ```

    As a definition:

    ```dsf right
    mixer scaled {
      dims d
      input u : d
      param w : d
      c = exp(w)
      y = c * u
    }
    ```
    """

    code: ClassVar[str] = "E-CONST"
    template: ClassVar[str] = "the constant `{name}` {problem}"
    name: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOutput(Diagnostic):
    """The mixer to compile defines no output `y`.

    The output of a mixer is the definition called `y`. A mixer without one is a base for others,
    as `qkv` is.

    ```dsf wrong
    mixer projected {
      dims d
      input u : d
      param W : d -> d
      q = W u
    }
    ```

    With an output:

    ```dsf right
    mixer projected {
      dims d
      input u : d
      param W : d -> d
      q = W u
      y = q
    }
    ```
    """

    code: ClassVar[str] = "E-NO-OUTPUT"
    stage: ClassVar[Stage] = Stage.COMPILE
    template: ClassVar[str] = "mixer `{mixer}` defines no `y`; write `y = …`, or extend it"
    mixer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled(Diagnostic):
    """Training never moves some parameters: they start at 0 (a note, not an error).

    A tensor without `=` or `~` starts at 0. Where each of them is multiplied by another one that
    is 0, all their gradients are 0 too, and descent leaves them where they are.

    ```dsf wrong
    mixer decayed {
      dims d, n
      input u : d
      param a : n unit;  B, C : d × n
      state x : d × n
      x = a * x[i-1] + B * u
      y = sum[n](C * x)
    }
    ```

    With first values:

    ```dsf right
    mixer decayed {
      dims d, n
      input u : d
      param a : n unit;  B, C : d × n ~ normal(0, 1)
      state x : d × n
      x = a * x[i-1] + B * u
      y = sum[n](C * x)
    }
    ```
    """

    code: ClassVar[str] = "N-START"
    severity: ClassVar[Severity] = Severity.NOTE
    template: ClassVar[str] = (
        "{starts} at 0, where the gradient is 0 too, so that training changes nothing; "
        "write first values, such as `~ normal(0, 1)`"
    )
    starts: str
