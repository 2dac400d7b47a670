"""Codes about claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsfc.diagnostics.report import Diagnostic, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimForm(Diagnostic):
    """A claim is neither a comparison nor a known predicate, or names what the mixer has not got.

    A claim compares values (`claim 0 < decay(S) < 1`), or is one of the predicates `stable`,
    `causal`, `time_invariant`, `row_stochastic`, `finite`, `class C` and `equivalent M`. The
    conditions after `when` are comparisons.

    ```dsf wrong
    mixer running {
      dims d
      input u : d
      state s : d
      s = 1/2 * s[i-1] + u
      y = s
      claim stabel
    }
    ```

    The predicate as it is spelled:

    ```dsf right
    mixer running {
      dims d
      input u : d
      state s : d
      s = 1/2 * s[i-1] + u
      y = s
      claim stable
    }
    ```
    """

    code: ClassVar[str] = "E-CLAIM-FORM"
    template: ClassVar[str] = "{problem}"
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRefuted(Diagnostic):
    """A claim does not hold: there is a point at which it was executed and failed.

    The point has rational inputs and parameters, in the ranges that are declared. What was
    executed there is in the message, with exact numbers or proven bounds. A predicate about
    the derived system itself (`class`, `finite`) is refuted by that system.

    ```dsf wrong
    mixer growing {
      dims d
      input u : d
      param a : d
      state s : d
      s = a * s[i-1] + u
      y = s
      claim stable
    }
    ```

    A parameter that is declared between 0 and 1:

    ```dsf right
    mixer growing {
      dims d
      input u : d
      param a : d unit = 1/2
      state s : d
      s = a * s[i-1] + u
      y = s
      claim stable
    }
    ```
    """

    code: ClassVar[str] = "E-CLAIM"
    template: ClassVar[str] = "claim `{claim}` is refuted: {witness}"
    claim: str
    witness: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimNote(Diagnostic):
    """A claim was neither proved nor refuted (a note, not an error).

    The message names what stood in the way. A search that finds no counterexample is no proof.
    `check --strict` takes an undecided claim for an error.

    ```dsf wrong
    mixer shares {
      dims d
      input u : d
      param a, b : d positive = 1
      state s : d
      s = a / (a + b) * s[i-1] + u
      y = s
      claim stable
    }
    ```

    A quotient is below 1 when it is written as what it is, a sigmoid:

    ```dsf right
    mixer shares {
      dims d
      input u : d
      param a, b : d positive = 1
      state s : d
      s = sigmoid(log(a) - log(b)) * s[i-1] + u
      y = s
      claim stable
    }
    ```
    """

    code: ClassVar[str] = "N-CLAIM"
    severity: ClassVar[Severity] = Severity.NOTE
    template: ClassVar[str] = "claim `{claim}` is not decided: {obstacle}"
    claim: str
    obstacle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOpen(Diagnostic):
    """A claim was neither proved nor refuted, and `check --strict` asks for a verdict on each.

    The message names what stood in the way. Without `--strict` the same is the note N-CLAIM.

    ```dsf wrong
    mixer shares {
      dims d
      input u : d
      param a, b : d positive = 1
      state s : d
      s = a / (a + b) * s[i-1] + u
      y = s
      claim decay(s) < 1
    }
    ```

    A claim of the same that a rule of proof sees, or none:

    ```dsf right
    mixer shares {
      dims d
      input u : d
      param a, b : d positive = 1
      state s : d
      s = sigmoid(log(a) - log(b)) * s[i-1] + u
      y = s
      claim decay(s) < 1
    }
    ```
    """

    code: ClassVar[str] = "E-CLAIM-OPEN"
    template: ClassVar[str] = "claim `{claim}` is not decided: {obstacle}"
    claim: str
    obstacle: str
