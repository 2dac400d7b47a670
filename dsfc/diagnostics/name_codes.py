"""Codes of names: definitions, functions, units, and what they refer to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsfc.diagnostics.report import Diagnostic, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class NameClash(Diagnostic):
    """A name has two meanings.

    Within one mixer a name is defined once: axis, input, parameter, buffer, state, constant,
    function or definition. A mixer that `extends` another may replace a definition by one of the
    same name. The letters `i` (time) and the names of primitives cannot be defined.

    ```dsf wrong
    mixer doubled {
      dims d, n
      input u : d
      n = 2 * u
      y = n
    }
    ```

    Use another name:

    ```dsf right
    mixer doubled {
      dims d
      input u : d
      x = 2 * u
      y = x
    }
    ```
    """

    code: ClassVar[str] = "E-NAME"
    template: ClassVar[str] = "`{name}` is {role} and cannot be defined again; {repair}"
    name: str
    role: str
    repair: str = "choose another name"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownName(Diagnostic):
    """The text uses a name that nothing defines.

    Names are inputs, parameters, buffers, states, constants, functions and definitions of the
    mixer and of those it extends, axes (in brackets), and the primitives of the language.

    ```dsf wrong
    mixer gated {
      dims d
      input u : d
      gate = sigmoid(u)
      y = gaet * u
    }
    ```

    The nearest name is suggested:

    ```dsf right
    mixer gated {
      dims d
      input u : d
      gate = sigmoid(u)
      y = gate * u
    }
    ```
    """

    code: ClassVar[str] = "E-UNKNOWN-NAME"
    template: ClassVar[str] = "`{name}` is not defined{instead}"
    name: str
    instead: str = ""

    @property
    def subject(self) -> str:
        """The name."""
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Base(Diagnostic):
    """A mixer extends one that cannot be found, or itself.

    The name after `extends` is looked for in the same text, then as `<name>.dsf` in the same
    folder, then among the shipped specs. A chain of `extends` must end.

    ```dsf wrong
    mixer attention extends qvk {
      y = sum[j ≤ i](q · k[j] * v[j])
    }
    ```

    The nearest name is suggested:

    ```dsf right
    mixer attention extends qkv {
      y = sum[j ≤ i](q · k[j] * v[j])
    }
    ```
    """

    code: ClassVar[str] = "E-BASE"
    template: ClassVar[str] = "`{name}`: {problem}"
    name: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Diagnostic):
    """The order of a series is not a constant.

    `taylor[P](s)` is the sum of s^r / r! for r up to P. The number of terms, and so the size of
    the state, must be known before the mixer runs.

    ```dsf wrong
    mixer series {
      dims d
      input u : d
      y = taylor[d](u)
    }
    ```

    A constant says it:

    ```dsf right
    mixer series {
      dims d
      input u : d
      const P = 2
      y = taylor[P](u)
    }
    ```
    """

    code: ClassVar[str] = "E-ORDER"
    template: ClassVar[str] = (
        "the order of `{function}` is `{order}`; it must be a constant, a whole number "
        "from 0 to {most}"
    )
    function: str
    order: str
    most: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture(Diagnostic):
    """The body of a function uses a stream.

    Inside `sum[j ≤ i](…)` a function may be called at j; a stream in its body would still be read
    at i, not at j.

    ```dsf wrong
    mixer scored {
      dims d
      input u : d
      f(x) = x * u
      y = f(u)
    }
    ```

    Pass it:

    ```dsf right
    mixer scored {
      dims d
      input u : d
      f(x, w) = x * w
      y = f(u, u)
    }
    ```
    """

    code: ClassVar[str] = "E-FUN"
    template: ClassVar[str] = (
        "function `{function}` may use its arguments, parameters and constants only, not "
        "the stream `{stream}`; make it an argument"
    )
    function: str
    stream: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeless(Diagnostic):
    """An index does not fit the name before it.

    Time indices (`[i-1]`, `[j]`) belong to streams and states. Parameters, buffers, constants and
    what is made of them only have the same value at all times.

    ```dsf wrong
    mixer biased {
      dims d
      input u : d
      param b : d
      y = u + b[i-1]
    }
    ```

    Without the index:

    ```dsf right
    mixer biased {
      dims d
      input u : d
      param b : d
      y = u + b
    }
    ```
    """

    code: ClassVar[str] = "E-INDEX"
    template: ClassVar[str] = "`{reference}`: {problem}"
    reference: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BadUse(Diagnostic):
    """`use` names no modifier, or nothing it could be applied to.

    `use modifier on name` rewrites one definition or input of the mixer. Modifiers are looked for
    like bases: same text, same folder, shipped specs.

    ```dsf wrong
    mixer shifted {
      dims d
      input u : d
      y = 2 * u
      use rotary on u
    }
    ```

    Only modifiers that exist:

    ```dsf right
    mixer shifted {
      dims d
      input u : d
      y = 2 * u
      use token_shift on u
    }
    ```
    """

    code: ClassVar[str] = "E-USE"
    template: ClassVar[str] = "{problem}"
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments(Diagnostic):
    """A function is called with the wrong arguments or brackets.

    Functions of the language and of the spec take a fixed number of arguments; those along an
    axis name it in brackets, as in `softmax[n](x)`.

    ```dsf wrong
    mixer called {
      dims d
      input u : d
      y = exp(u, u)
    }
    ```

    `exp` takes one:

    ```dsf right
    mixer called {
      dims d
      input u : d
      y = exp(u)
    }
    ```
    """

    code: ClassVar[str] = "E-CALL"
    template: ClassVar[str] = "`{function}` {problem}"
    function: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComplexValue(Diagnostic):
    """A value is complex where a real one is needed, or the other way round.

    The output is real, and so are inputs and the arguments of most functions. Take `Re(x)`,
    `Im(x)` or `abs(x)`. A state with complex values says so: `state x : n complex`.

    ```dsf wrong
    mixer rotated {
      dims d
      input u : d
      param w : d
      y = u * cis(w)
    }
    ```

    The real part:

    ```dsf right
    mixer rotated {
      dims d
      input u : d
      param w : d
      y = Re(u * cis(w))
    }
    ```
    """

    code: ClassVar[str] = "E-FIELD"
    template: ClassVar[str] = "{problem}"
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread(Diagnostic):
    """A name is defined or declared, and nothing reads it (a note, not an error).

    What the output does not read is not part of the mixer. In a mixer that extends another one a
    definition replaces that of the same name; under a misspelt name it replaces none.

    ```dsf wrong
    mixer forgetful extends gla {
      alpa = sigmoid(W_2 W_1 u)
    }
    ```

    Under the name that is read:

    ```dsf right
    mixer forgetful extends gla {
      α = sigmoid(W_2 W_1 u)
    }
    ```
    """

    code: ClassVar[str] = "N-UNREAD"
    severity: ClassVar[Severity] = Severity.NOTE
    template: ClassVar[str] = "nothing reads `{name}`"
    name: str
