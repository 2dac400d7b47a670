"""Whether one mixer is a case of another, as text and as JSON; each statement has its own line."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dsfc.prover.condition_text import ConditionText, interval_text
from dsfc.prover.report import entries_text, first_defined, number_text, open_sizes, reach
from dsfc.prover.sizes import unexamined
from dsfc.prover.subsumes import Kinds, Subsumption
from dsfc.prover.verdict import Instance, NotAnInstance, Unknown
from dsfc.trusted.alpha_rename import alpha_rename
from dsfc.trusted.claim import (
    Certificate,
    Claim,
    Conditional,
    ConstantSequence,
    SeparatingSequences,
)
from dsfc.trusted.rules.conditional import localities
from dsfc.trusted.rules.constant_sequence import RepeatedToken
from dsfc.trusted.rules.regions import Region
from dsfc.trusted.rules.steady import Base, steady
from dsfc.trusted.statement import state

STATEMENT = "whatever the first's parameters are, some values of the second's give its output"

SHARED = "parameters of one name are equal"
APART = f"what the second has another of has a name with _ at the end; {SHARED}"

_SLOTS = (
    "whatever the first's parameters are, some functions of {} for the second's own"
    " inputs and some values of its parameters give its output"
)
SLOTS = _SLOTS.format("the last tokens")


def kinds_report(kinds: Kinds, a: str, b: str) -> str:
    """Returns as text what is known besides EQ and COND; empty where these say it all.

    Args:
        kinds: what was found.
        a: what to call the first mixer.
        b: what to call the second.
    """
    left = f"time was up before more was examined: {kinds.left}\n" if kinds.left else ""
    if kinds.forth is None or kinds.back is None:
        return left
    lines = [f"ISO  each is a case of the other: {_both(kinds)}"]
    lines += _within(kinds.forth, kinds.slots[0], a, b)
    lines += _within(kinds.back, kinds.slots[1], b, a)
    return "\n".join(lines) + "\n" + left


def kinds_json(kinds: Kinds) -> dict[str, Any]:
    """Returns the same for tools, by statement."""
    left = {"left": kinds.left} if kinds.left else {}
    if kinds.forth is None or kinds.back is None:
        return left
    return left | {
        "ISO": {"verdict": _both(kinds)},
        "SUB": _json(kinds.forth, kinds.slots[0]),
        "SUB exchanged": _json(kinds.back, kinds.slots[1]),
    }


def no_case_sizes(certificate: Certificate) -> str:
    """Returns at which sizes no parameters of b make a a case of it."""
    claim, proof = certificate.claim, certificate.proof
    own = {d.axis.name for d in claim.a.axes}
    sizes = ", ".join(f"{name} = {size}" for name, size in claim.sizes if name in own)
    more = " and all larger" if isinstance(proof, ConstantSequence) and proof.larger else ""
    every = f"; any {', '.join(claim.every)} of the second" if claim.every else ""
    return f"{sizes}{more}{every}"


def holds_somewhere(certificate: Certificate) -> bool:
    """Whether a certificate of a case holds a point at which the first's output is not 0."""
    return isinstance(certificate.proof, Conditional) and certificate.proof.holds is not None


def _both(kinds: Kinds) -> str:
    """What is known of ISO; cases of one another at different sizes are none."""
    both = (kinds.forth, kinds.back)
    if any(isinstance(w, NotAnInstance) and w.reads is None for w in both):
        return "refuted"
    cases = [dict(w.certificate.claim.sizes) for w in both if isinstance(w, Instance)]
    if len(cases) < 2 or any(k != cases[1].get(name, k) for name, k in cases[0].items()):
        return "unknown"
    return "proved"


def kind(verdict: Subsumption, slots: tuple[str, ...]) -> str:
    """Returns which statement was decided: SUB, or SLOT with the locality of the functions.

    Args:
        verdict: what was found.
        slots: inputs that the second alone has.
    """
    if not slots:
        return "SUB"
    if isinstance(verdict, Instance):
        claim = alpha_rename(verdict.certificate.claim)
        furthest = localities(claim, state(claim, False)).values()
        read = [k for k in furthest if k is not None]
        if not read:
            return "SLOT(constant)"
        return f"SLOT(window {max(read)})" if max(read) else "SLOT(token)"
    if not isinstance(verdict, NotAnInstance):
        return "SLOT"
    # A constant sequence makes a constant of every function of the last tokens.
    if isinstance(verdict.proof, ConstantSequence):
        return "SLOT(window)"
    return {None: "SLOT(history)", 0: "SLOT(token)"}.get(
        verdict.reads, f"SLOT(window {verdict.reads})"
    )


def _within(verdict: Subsumption, slots: tuple[str, ...], a: str, b: str) -> list[str]:
    filled = f", its {', '.join(slots)} functions of tokens" if slots else ""
    head = f"{kind(verdict, slots)}  {a} is a case of {b}{filled}: "
    match verdict:
        case Instance(certificate, unseen):
            claim = alpha_rename(certificate.claim)
            texts = ConditionText(claim, state(claim, False))
            values = [texts.plain(text) for _, text in texts.lines()]
            told = APART if certificate.claim.apart else SHARED
            lines = [f"{head}proved {reach(claim)}".rstrip()]
            lines += [f"  statement  {SLOTS if slots else STATEMENT}", *open_sizes(claim)]
            if not holds_somewhere(certificate):
                lines.append(first_defined(certificate.defined, unseen))
            return [*lines, f"  values     {'; '.join([*values, told])}"]
        case NotAnInstance(certificate):
            none = (
                f"no functions of {_read(verdict)} and no parameters" if slots else "no parameters"
            )
            return [f"{head}refuted, for {none}", *_no_case(verdict, slots, a, b)]
        case Unknown():
            lines = [f"{head}unknown", *(f"  tried      {t}" for t in verdict.tried)]
            return [*lines, f"  to decide  {verdict.decides}"]


def _read(verdict: NotAnInstance) -> str:
    """What the functions read that are excluded."""
    if isinstance(verdict.proof, ConstantSequence):
        return "the last tokens"
    if verdict.reads is None:
        return "the whole history"
    return f"the token and the {verdict.reads} before it" if verdict.reads else "the token alone"


def _no_case(verdict: NotAnInstance, slots: tuple[str, ...], a: str, b: str) -> list[str]:
    certificate, proof = verdict.certificate, verdict.proof
    claim = certificate.claim
    if isinstance(proof, SeparatingSequences):
        return _on_sequences(verdict, proof, slots, a, b)
    parts = _recurring(proof, a, b) if proof.recurrence else _powers(claim, proof, a, b)
    lines = [
        f"  statement  {SLOTS if slots else STATEMENT}",
        f"  sizes      {no_case_sizes(certificate)}",
        "  sequence   one token for ever, at the point",
        *(f"    {name} = {entries_text(values)}" for name, values in proof.values),
        *parts,
    ]
    if proof.always:
        first = RepeatedToken(claim, proof.values).first
        lines += [
            f"  exceptions no values of {a}'s parameters either, but those that make its output",
            f"             constant on every constant sequence, from token {first - 1} on",
        ]
    else:
        lines.append(f"  open       other values of {a}'s parameters")
    return lines


def _on_sequences(
    verdict: NotAnInstance, proof: SeparatingSequences, slots: tuple[str, ...], a: str, b: str
) -> list[str]:
    spelled = [" ".join(_letter(k) for k in one) for one in proof.sequences]
    tokens = [
        f"    token {_letter(k)}: {', '.join(f'{n} = {entries_text(v)}' for n, v in letter)}"
        for k, letter in enumerate(proof.letters)
        if any(k in one for one in proof.sequences)
    ]
    asked = f"functions of {_read(verdict)} and parameters" if slots else "parameters"
    count = len(proof.parts)
    return [
        f"  statement  {_SLOTS.format(_read(verdict)) if slots else STATEMENT}",
        f"  sizes      {no_case_sizes(verdict.certificate)}; nothing is said of others",
        f"  sequences  {'; '.join(spelled)}, at the point",
        *(f"    {name} = {entries_text(values)}" for name, values in proof.values),
        *tokens,
        f"    {a} has {count} outputs there such that {b} can have at most {count - 1} of them",
        f"  shown by   a combination of {count} equations in {b}'s unknown {asked}",
        "             that leaves a number other than 0",
        f"  open       other values of {a}'s parameters",
    ]


def _letter(k: int) -> str:
    return "abcdefgh"[k]


def _powers(claim: Claim, proof: ConstantSequence, a: str, b: str) -> list[str]:
    foreign = map(number_text, RepeatedToken(claim, proof.values).foreign)
    theirs = map(_base, steady(claim.b, dict(claim.sizes)).bases)
    return [
        f"    {a}: a part of its output goes like the powers of {' or '.join(foreign)}",
        f"    {b}: whatever its parameters are, {'; '.join(theirs) or 'none lasts'}",
    ]


def _recurring(proof: ConstantSequence, a: str, b: str) -> list[str]:
    terms = []
    for k, (p, q) in reversed(list(enumerate(proof.recurrence))):
        if p:
            size, sign = abs(Fraction(p, q)), "-" if (p < 0) != (q < 0) else "+"
            factor = "" if size == 1 else f"{size} "
            terms.append(f"{sign} {factor}s[l{f'+{k}' if k else ''}]")
    law = " ".join(terms).removeprefix("+ ")
    return [
        f"    {a}: its increments s obey {law} = 0, and are no sum of powers",
        f"    {b}: whatever its parameters are, its increments are a sum of powers",
    ]


def _base(base: Base) -> str:
    return f"those of {base.state} {region_text(base.region)}"


def region_text(region: Region) -> str:
    """Returns where numbers lie, as a clause: "lie in (0, 1)"."""
    low, high = region.interval.low, region.interval.high
    if low == high:
        return f"are {'' if region.real else 'of modulus '}{low:g}"
    return f"{'lie' if region.real else 'have moduli'} in {interval_text(region.interval)}"


def _sequences_json(claim: Claim, proof: SeparatingSequences) -> dict[str, Any]:
    letters = [{name: entries_text(v) for name, v in letter} for letter in proof.letters]
    return {"verdict": "refuted", "parameters": "none", "sizes": dict(claim.sizes),
            "every": [], "larger": [], "always": False, "locality": claim.locality,
            "point": {name: entries_text(values) for name, values in proof.values},
            "letters": letters, "sequences": [list(one) for one in proof.sequences]}  # fmt: skip


def _json(verdict: Subsumption, slots: tuple[str, ...]) -> dict[str, Any]:
    return {"statement": kind(verdict, slots), "slots": list(slots)} | _decided(verdict)


def _decided(verdict: Subsumption) -> dict[str, Any]:
    match verdict:
        case Instance(certificate):
            claim = alpha_rename(certificate.claim)
            others = unexamined(claim.a, claim.b, dict(claim.sizes))
            return {"verdict": "proved", "sizes": dict(certificate.claim.sizes),
                    "open": dict(others)}  # fmt: skip
        case NotAnInstance(certificate):
            claim, proof = certificate.claim, verdict.proof
            if isinstance(proof, SeparatingSequences):
                return _sequences_json(claim, proof)
            point = {name: entries_text(values) for name, values in proof.values}
            return {"verdict": "refuted", "parameters": "none", "sizes": dict(claim.sizes),
                    "every": list(claim.every), "larger": list(proof.larger),
                    "always": proof.always,
                    "recurrence": [str(Fraction(*c)) for c in proof.recurrence],
                    "point": point, "token": proof.token, "index": list(proof.index)}  # fmt: skip
    return {"verdict": "unknown", "tried": list(verdict.tried), "decides": verdict.decides}
