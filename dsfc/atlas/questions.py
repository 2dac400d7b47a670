"""What is asked of two systems: equality, equality under conditions, whether one is a case.

A question gives its answer as JSON, so that it can be kept and sent between processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

from dsfc.diagnostics.catalogue import Limit
from dsfc.diagnostics.report import DiagnosticError
from dsfc.limits import Limits
from dsfc.prover.condition_text import ConditionText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.report import as_json, range_conditions
from dsfc.prover.sizes import chosen
from dsfc.prover.subsumes import Subsumption, subsumes
from dsfc.prover.subsumes_report import kind, no_case_sizes
from dsfc.prover.verdict import Conditionally, Equal, NotAnInstance, ProvedWhereDefined, Unknown
from dsfc.resource_limits import bounded
from dsfc.system.ir import System
from dsfc.trusted.alpha_rename import alpha_rename
from dsfc.trusted.claim import Certificate, Claim, Conditional
from dsfc.trusted.comparable import comparable, slots
from dsfc.trusted.statement import state

Document = dict[str, Any]
"""A verdict as JSON."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about two systems; the answer is a verdict as JSON.

    An answer has `verdict` (a value of `Found`) and `statement`. A proof may have `conditions`, a
    list of texts, and `directed`, whether it speaks of a as a case of b. `open` says that a
    further question about the same statement may find more; an unknown is always open.

    Attributes:
        name: part of the key that answers are kept by.
        ask: gives the answer.
        about: the statement: questions about one are asked in turn, until an answer is not open.
        both_ways: whether it has to be asked of (b, a) too.
        otherwise: whether it is asked only of pairs that no question without this mark settles.
        weight: its part of the seconds of a pair, for each way that it is asked.
    """

    name: str
    ask: Callable[[System, System], Document]
    about: str = "EQ"
    both_ways: bool = False
    otherwise: bool = False
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, and what it cost.

    Attributes:
        document: the verdict.
        seconds: of processor time.
        limit: the seconds after which the work was ended; None if it came to its end.
    """

    document: Document
    seconds: float
    limit: float | None = None


def answered(question: Question, a: System, b: System, seconds: float) -> Answer:
    """Returns the answer to a question within some seconds of processor time.

    Args:
        question: what is asked.
        a: the first system.
        b: the second.
        seconds: after which the answer is "unknown".
    """
    began = process_time()
    try:
        with bounded("relate the two", Limits(seconds=seconds)):
            document = question.ask(a, b)
    except DiagnosticError as e:
        if not any(isinstance(d, Limit) for d in e.diagnostics):
            raise
        return Answer(undecided(question), process_time() - began, seconds)
    return Answer(document, process_time() - began)


LIMIT = "the limit of seconds per pair was reached (--limit)"
"""Why a question has no answer that had too little time."""


def undecided(question: Question, obstacle: str = LIMIT) -> Document:
    """Returns the answer where nothing was found."""
    return {"verdict": "unknown", "statement": question.about, "obstacle": obstacle}


def incomparable(a: System, b: System) -> str | None:
    """Returns why two systems cannot be put side by side, None where they can."""
    inputs = [{t.name for t in system.inputs} for system in (a, b)]
    if not inputs[0] & inputs[1]:
        return "they share no input"
    try:
        comparable(Claim(a, b, (), chosen(a, b, 2)))
    except ValueError as e:
        return str(e)
    return None


def _equal(a: System, b: System) -> Document:
    """Whether the outputs are equal for equal inputs and parameters."""
    verdict = equivalent(a, b)
    if isinstance(verdict, ProvedWhereDefined):
        return {"verdict": "unknown", "statement": "EQ", "obstacle": verdict.obstacle}
    if isinstance(verdict, Equal):
        return {**as_json(verdict), "conditions": range_conditions(verdict.certificate.claim)}
    return as_json(verdict)


def _under_conditions(a: System, b: System) -> Document:
    """Whether the outputs are equal where conditions hold."""
    verdict = equivalent(a, b, conditions=True)
    if isinstance(verdict, Conditionally):
        shown = _certified(verdict.certificate)
        conditions = [*shown["conditions"], *range_conditions(verdict.certificate.claim)]
        return {"verdict": "proved", "statement": "COND", **shown, "conditions": conditions}
    obstacle = "conditions: none were found under which they are equal"
    return {"verdict": "unknown", "statement": "COND", "obstacle": obstacle}


def _no_case(a: System, b: System) -> Document:
    """Whether a is no case of b, by a few sequences: fast."""
    return _case_document(a, b, subsumes(a, b))


def _case(a: System, b: System) -> Document:
    """Whether a is a case of b, with a search for the values that make it one."""
    return _case_document(a, b, subsumes(a, b, conditions=True))


def _case_document(a: System, b: System, verdict: Subsumption) -> Document:
    statement = kind(verdict, tuple(slots(Claim(a, b, (), ()))))
    if isinstance(verdict, Unknown):
        obstacle = f"a case: {verdict.tried[-1] if verdict.tried else verdict.obstacle}"
        return {"verdict": "unknown", "statement": statement, "obstacle": obstacle}
    if isinstance(verdict, NotAnInstance):
        sizes = no_case_sizes(verdict.certificate)
        reason = f"sequences that it cannot give, {sizes}"
        # Functions of the last tokens may do what functions of the token alone cannot.
        return {"verdict": "refuted", "statement": statement, "reason": reason, "directed": True,
                "open": verdict.reads is not None}  # fmt: skip
    shown = _certified(verdict.certificate)
    return {"verdict": "proved", "statement": statement, "directed": True, **shown}


def _certified(certificate: Certificate) -> Document:
    """The conditions of a claim in words, and what its proof rests on."""
    claim, proof = alpha_rename(certificate.claim), certificate.proof
    assert isinstance(proof, Conditional)
    texts = ConditionText(claim, state(claim, False))
    conditions = [texts.plain(text) for _, text in texts.lines()]
    return {"conditions": conditions, "sizes": dict(claim.sizes),
            "rows": len(proof.invariant.rows)}  # fmt: skip


EQUAL = Question("equal outputs for equal inputs and parameters", _equal, weight=5)

CONDITIONAL = (
    Question("no case of the second", _no_case, "SUB", both_ways=True, otherwise=True),
    Question("a case of the second", _case, "SUB", both_ways=True, otherwise=True),
    Question("equal outputs where conditions hold", _under_conditions, "COND", otherwise=True),
)
"""What is asked of mixers that are not proved equal, the fastest first; others take minutes."""
