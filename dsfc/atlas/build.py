"""Asking about every pair of mixers: the one public function of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from dsfc.atlas.ir import Atlas, Found, Node, Pair
from dsfc.atlas.store import Document, Store, fingerprint
from dsfc.claims.verdict import Decided, Proved
from dsfc.expr.statements import Predicate, PredicateName
from dsfc.prover.condition_text import ConditionText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.report import as_json, range_conditions
from dsfc.prover.sizes import chosen
from dsfc.prover.subsumes import subsumes
from dsfc.prover.subsumes_report import kind, no_case_sizes
from dsfc.prover.verdict import Conditionally, Equal, NotAnInstance, ProvedWhereDefined, Unknown
from dsfc.system.ir import System
from dsfc.trusted.alpha_rename import alpha_rename
from dsfc.trusted.claim import Certificate, Claim, Conditional
from dsfc.trusted.comparable import comparable, slots
from dsfc.trusted.statement import state


@dataclass(frozen=True, slots=True)
class Charted:
    """A mixer to chart.

    Attributes:
        node: what it is called.
        system: its derived system.
        claims: what it claims of others, decided; proofs among them are edges.
    """

    node: Node
    system: System
    claims: tuple[Decided, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question about two systems; the answer is a verdict as JSON.

    An answer has `verdict` (a value of `Found`) and `statement`; where it is proved it
    may have `conditions`, a list of texts, and `directed`, whether it speaks of a as a case of b.

    Attributes:
        name: part of the key that answers are kept by.
        ask: gives the answer.
        kind: the statement that is asked about, where the answer does not say it more closely.
        both_ways: whether it has to be asked of (b, a) too.
        otherwise: whether it is asked only of pairs that no question without this mark settles.
    """

    name: str
    ask: Callable[[System, System], Document]
    kind: str = "EQ"
    both_ways: bool = False
    otherwise: bool = False


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


def _case(a: System, b: System) -> Document:
    """Whether a is a case of b."""
    verdict = subsumes(a, b, conditions=True)
    statement = kind(verdict, tuple(slots(Claim(a, b, (), ()))))
    if isinstance(verdict, Unknown):
        obstacle = f"a case: {verdict.tried[-1] if verdict.tried else verdict.obstacle}"
        return {"verdict": "unknown", "statement": statement, "obstacle": obstacle}
    if isinstance(verdict, NotAnInstance):
        sizes = no_case_sizes(verdict.certificate)
        reason = f"one token for ever, {sizes}"
        return {"verdict": "refuted", "statement": statement, "reason": reason, "directed": True}
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


EQUAL = Question("equal outputs for equal inputs and parameters", _equal)

CONDITIONAL = (
    Question("equal outputs where conditions hold", _under_conditions, "COND", otherwise=True),
    Question("a case of the second", _case, "SUB", both_ways=True, otherwise=True),
)
"""What is asked of mixers that are not proved equal; an answer may take minutes."""

Progress = Callable[[int, int, str], None]
"""Called with how many pairs are done, how many there are, and the next one."""


def build(
    mixers: tuple[Charted, ...],
    questions: tuple[Question, ...] = (EQUAL,),
    store: Store | None = None,
    progress: Progress | None = None,
    left_out: tuple[tuple[str, str], ...] = (),
) -> Atlas:
    """Returns what is known of every pair of some mixers.

    Args:
        mixers: in the order they are listed.
        questions: what is asked of each pair.
        store: where answers are kept; None keeps none.
        progress: called before each pair.
        left_out: mixers that have no system, with the reason.
    """
    prints = {m.node.name: fingerprint(m.system) for m in mixers}
    pairs: list[Pair] = []
    settled: set[frozenset[str]] = set()
    asked = list(_asked(mixers, questions))
    for done, (question, a, b) in enumerate(asked):
        names = a.node.name, b.node.name
        if progress is not None:
            progress(done, len(asked), ", ".join(names))
        if question.otherwise and frozenset(names) in settled:
            continue
        answer = _answer(question, a, b, store, prints)
        pairs.append(answer)
        equal = answer.found is Found.PROVED and not question.otherwise
        if equal or answer.found is Found.SKIPPED:
            settled.add(frozenset(names))
    systems = {m.node.name: m.system for m in mixers}
    for m in mixers:
        pairs += _claimed(m, systems)
    return Atlas(tuple(m.node for m in mixers), tuple(pairs), left_out)


def _asked(
    mixers: tuple[Charted, ...], questions: tuple[Question, ...]
) -> Iterator[tuple[Question, Charted, Charted]]:
    for a, b in combinations(mixers, 2):
        for question in questions:
            yield question, a, b
            if question.both_ways:
                yield question, b, a


def _answer(
    question: Question, a: Charted, b: Charted, store: Store | None, prints: dict[str, str]
) -> Pair:
    names = a.node.name, b.node.name
    why = _incomparable(a.system, b.system)
    if why is not None:
        return Pair(*names, Found.SKIPPED, question.kind, reason=why)
    key = None if store is None else store.key(question.name, *(prints[n] for n in names))
    answer = None if store is None or key is None else store.get(key)
    if answer is None:
        answer = question.ask(a.system, b.system)
        if store is not None and key is not None:
            store.put(key, answer)
    return _pair(names, answer)


def _incomparable(a: System, b: System) -> str | None:
    """Why two systems cannot be put side by side, None where they can."""
    inputs = [{t.name for t in system.inputs} for system in (a, b)]
    if not inputs[0] & inputs[1]:
        return "they share no input"
    try:
        comparable(Claim(a, b, (), chosen(a, b, 2)))
    except ValueError as e:
        return str(e)
    return None


def _pair(names: tuple[str, str], answer: Document) -> Pair:
    return Pair(
        *names,
        Found(answer["verdict"]),
        str(answer.get("statement", "")),
        tuple(str(c) for c in answer.get("conditions", ())),
        _reason(answer),
        bool(answer.get("directed", False)),
        tuple(_fixed(answer).items()) if str(answer["verdict"]).startswith("proved") else (),
    )


def _fixed(answer: Document) -> dict[str, int]:
    """The axes that an answer speaks of at one size alone, with this size."""
    every = answer.get("every", ())
    return {n: k for n, k in answer.get("sizes", {}).items() if n not in every}


def _reason(answer: Document) -> str:
    match answer["verdict"]:
        case "proved" | "proved at sizes":
            every, fixed = answer.get("every", ()), _fixed(answer)
            parts = [f"all {', '.join(every)}"] * bool(every) + [_sizes(fixed)] * bool(fixed)
            return ", ".join((f"{answer.get('rows', 0)} rows", *parts))
        case "refuted" if "reason" in answer:
            return str(answer["reason"])
        case "refuted":
            return f"a point of {answer.get('length', 0)} tokens, {_sizes(answer.get('sizes', {}))}"
    return str(answer.get("obstacle", ""))


def _sizes(sizes: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _claimed(m: Charted, known: Mapping[str, System]) -> Iterator[Pair]:
    """What a mixer claims of another, where that is proved under conditions."""
    for claim in m.claims:
        what = claim.statement.what
        if not isinstance(what, Predicate) or what.word is not PredicateName.EQUIVALENT:
            continue
        other = what.about or ""
        if other in known and other != m.node.name and isinstance(claim.verdict, Proved):
            conditions = tuple(c.text() for c in claim.statement.when)
            conditions += tuple(range_conditions(Claim(m.system, known[other], (), ())))
            yield Pair(m.node.name, other, Found.PROVED, "EQ", conditions, claim.verdict.by)
