"""Codes of time: what may be read when, what a state may do, what is not checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsfc.diagnostics.report import Diagnostic, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Recursion(Diagnostic):
    """A definition depends on itself.

    Only a declared state may read its own past. No definition may read its own present value,
    through however many others.

    ```dsf wrong
    mixer running {
      dims d
      input u : d
      x = x[i-1] + u
      y = x
    }
    ```

    Declare the state:

    ```dsf right
    mixer running {
      dims d
      input u : d
      state x : d
      x = x[i-1] + u
      y = x
    }
    ```
    """

    code: ClassVar[str] = "E-RECURSION"
    template: ClassVar[str] = "`{name}` reads {what} ({path}); {repair}"
    name: str
    what: str
    path: str
    repair: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateNow(Diagnostic):
    """The update of a state reads the state at the same time.

    An update makes the value at i from the value at i-1. Without index a name is taken at i.

    ```dsf wrong
    mixer running {
      dims d
      input u : d
      state s : d
      s = s + u
      y = s
    }
    ```

    The past is written:

    ```dsf right
    mixer running {
      dims d
      input u : d
      state s : d
      s = s[i-1] + u
      y = s
    }
    ```
    """

    code: ClassVar[str] = "E-STATE-NOW"
    template: ClassVar[str] = "state `{state}` reads its own present value; write `{state}[i-1]`"
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Future(Diagnostic):
    """An expression reads a later value of a stream.

    A mixer is causal unless it says otherwise by a `backward` state or a sum over `j > i`.

    ```dsf wrong
    mixer ahead {
      dims d
      input u : d
      y = u[i+1]
    }
    ```

    The past may be read:

    ```dsf right
    mixer ahead {
      dims d
      input u : d
      y = u[i-1]
    }
    ```
    """

    code: ClassVar[str] = "E-FUTURE"
    template: ClassVar[str] = (
        "`{reference}` reads the future; the past is `{past}`, and only a `backward` state or "
        "`sum[j > i]` may look ahead"
    )
    reference: str
    past: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag(Diagnostic):
    """An update reads a state further back than one step.

    A state holds its last value alone. A second state can hold the value before.

    ```dsf wrong
    mixer delayed {
      dims d
      input u : d
      state s : d
      s = 1/2 * s[i-2] + u
      y = s
    }
    ```

    With a register:

    ```dsf right
    mixer delayed {
      dims d
      input u : d
      state s, register : d
      register = s[i-1]
      s = 1/2 * register[i-1] + u
      y = s
    }
    ```
    """

    code: ClassVar[str] = "E-LAG"
    template: ClassVar[str] = (
        "`{reference}` is more than one step back; add a register state that holds the step between"
    )
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoUpdate(Diagnostic):
    """A state is declared and never defined.

    Each state has exactly one update: `S = …`, or a flow `S' = … by zoh(Δ)`.

    ```dsf wrong
    mixer running {
      dims d
      input u : d
      state s : d
      y = u
    }
    ```

    With its update:

    ```dsf right
    mixer running {
      dims d
      input u : d
      state s : d
      s = s[i-1] + u
      y = s
    }
    ```
    """

    code: ClassVar[str] = "E-STATE"
    template: ClassVar[str] = "state `{state}` has no update; write `{state} = …`"
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NonlinearState(Diagnostic):
    """An update is not affine in the past of its states.

    The dynamical systems form has h_i = Λ_i h_{i-1} + B_i u_i: coefficients may depend on inputs,
    and on states that do not depend on this one, and nothing nonlinear is applied to the past.
    Functions can move to the input or to the read-out.

    ```dsf wrong
    mixer squashed {
      dims d
      input u : d
      state s : d
      s = tanh(s[i-1]) + u
      y = s
    }
    ```

    The function at the read-out:

    ```dsf right
    mixer squashed {
      dims d
      input u : d
      state s : d
      s = 1/2 * s[i-1] + u
      y = tanh(s)
    }
    ```
    """

    code: ClassVar[str] = "E-NONLINEAR-STATE"
    template: ClassVar[str] = "`{state}` is not linear in its past: {why}; {repair}"
    state: str
    why: str
    repair: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxPlus(Diagnostic):
    """A maximum over the past does not have the form `m = max(m[i-1] + a, w)`.

    Neither `a` nor `w` depends on `m`; its past is not multiplied, nothing but `max` is applied to
    it, and it does not run backward. It is read at `i` and `i-1`, and no filter reads it. Before
    the first token it is below all numbers. The published stabilised forms of xLSTM, RWKV-4 and
    online softmax have such a state.

    ```dsf wrong
    mixer largest {
      dims d
      input u : d
      state m : d
      m = max(1/2 * m[i-1], u)
      y = m
    }
    ```

    A value is added to the past:

    ```dsf right
    mixer largest {
      dims d
      input u : d
      state m : d
      m = max(m[i-1] - 1/2, u)
      y = m
    }
    ```
    """

    code: ClassVar[str] = "E-MAX-PLUS"
    template: ClassVar[str] = "the maximum `{state}`: {why}; {repair}"
    state: str
    why: str
    repair: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LagPower(Diagnostic):
    """A power over positions is not the power of a lag.

    In a sum over the past, `c^(i-j)` becomes the decay of a state. An exponent such as `i + j`
    has no finite state.

    ```dsf wrong
    mixer decayed {
      dims d
      input u : d
      param c : d unit
      y = sum[j ≤ i](c^(i+j) * u[j])
    }
    ```

    The lag:

    ```dsf right
    mixer decayed {
      dims d
      input u : d
      param c : d unit
      y = sum[j ≤ i](c^(i-j) * u[j])
    }
    ```
    """

    code: ClassVar[str] = "E-LAG-POWER"
    template: ClassVar[str] = (
        "`{exponent}` must be a lag, `i - j` or `i - j - 1`; anything else grows with the position"
        "{instead}"
    )
    exponent: str
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRule(Diagnostic):
    """The rule of a flow does not fit its drift.

    Rules are `zoh`, `euler` and `bilinear`. The exponential of `zoh` and `euler` is taken
    elementwise, so they need a diagonal drift; a diagonal plus one low-rank part goes with
    `bilinear`. The step has axes of the state only.

    ```dsf wrong
    mixer flowing {
      dims d, n
      input u : d
      param a : n positive;  P : n ~ normal(0, 1)
      state x : d × n
      x' = -a * x - P ⊗ sum[n](P * x) + u ⊗ ones[n]   by zoh(1/100)
      y = sum[n](x)
    }
    ```

    The rule that takes it:

    ```dsf right
    mixer flowing {
      dims d, n
      input u : d
      param a : n positive;  P : n ~ normal(0, 1)
      state x : d × n
      x' = -a * x - P ⊗ sum[n](P * x) + u ⊗ ones[n]   by bilinear(1/100)
      y = sum[n](x)
    }
    ```
    """

    code: ClassVar[str] = "E-FLOW"
    template: ClassVar[str] = "the flow of `{state}`: {problem}"
    state: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleIndex(Diagnostic):
    """A sum over tokens reads nothing at the token it sums over (a note, not an error).

    A name without an index is its value at the present token: in `sum[j ≤ i](v)` all summands are
    equal, so that the sum is v times the number of tokens so far. A value at token j is `v[j]`.

    ```dsf wrong
    mixer total extends qkv {
      y = sum[j ≤ i](k · q * v)
    }
    ```

    With the index:

    ```dsf right
    mixer total extends qkv {
      y = sum[j ≤ i](k[j] · q * v[j])
    }
    ```
    """

    code: ClassVar[str] = "N-INDEX"
    severity: ClassVar[Severity] = Severity.NOTE
    template: ClassVar[str] = (
        "nothing in this sum is read at token `{index}`; `{stream}` is its present value, at token "
        "`{index}` it is `{stream}[{index}]`"
    )
    index: str
    stream: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheNote(Diagnostic):
    """A sum over the past has no finite state (a note, not an error).

    The sum is legal, but its state grows by one entry per token, and its structure cell is NONE. A
    mean weighted by exponentials of q · k[j] compiles all the same, to softmax attention over all
    tokens. The state becomes finite when the summand is a sum of (function of i) × (function of j)
    × (decay of i - j).

    ```dsf wrong
    mixer attention extends qkv {
      y = sum[j ≤ i](exp(q · k[j]) * v[j])
    }
    ```

    The exponential of each factor separates, that of the product does not:

    ```dsf right
    mixer attention extends qkv {
      y = sum[j ≤ i](exp(q) · exp(k[j]) * v[j])
    }
    ```
    """

    code: ClassVar[str] = "N-CACHE"
    severity: ClassVar[Severity] = Severity.NOTE
    template: ClassVar[str] = "this sum keeps all tokens, because {why}"
    why: str
