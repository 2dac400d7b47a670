"""A verdict as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from typing import Any

from dsfc.expr.declarations import Constraint
from dsfc.expr.text import text
from dsfc.prover.alike_names import names_line
from dsfc.prover.condition_rules import Rules
from dsfc.prover.condition_text import ConditionText, values_text
from dsfc.prover.relations import relation_lines
from dsfc.prover.sizes import unexamined
from dsfc.prover.two_ways import steps
from dsfc.prover.verdict import (
    AtSizes,
    Conditionally,
    Equal,
    Proved,
    ProvedWhereDefined,
    Refuted,
    Unknown,
    Verdict,
)
from dsfc.trusted.alpha_rename import alpha_rename
from dsfc.trusted.balls import Complex, Real
from dsfc.trusted.check import Accepted
from dsfc.trusted.claim import (
    Assumption,
    CellMonomial,
    Claim,
    Coefficient,
    Invariant,
    Number,
    Point,
    Row,
    Somewhere,
    TwoWays,
)
from dsfc.trusted.comparable import ranges
from dsfc.trusted.invariant import unlifted
from dsfc.trusted.laws import law
from dsfc.trusted.rules.point import Evaluated
from dsfc.trusted.statement import state

_RANGES = {
    Constraint.NONE: "any number",
    Constraint.POSITIVE: "positive",
    Constraint.NONNEG: "at least 0",
    Constraint.UNIT: "in (0, 1)",
    Constraint.NONZERO: "not 0",
}
"""Constraints in words, after "is"."""

STATEMENT = "equal outputs for equal inputs and equal parameters, for every length"


def report(
    verdict: Verdict,
    a: str,
    b: str,
    explain: bool = False,
    conditions: bool = False,
    layers: str = "",
) -> str:
    """Returns a verdict as text.

    Args:
        verdict: what was found.
        a: what to call the first mixer.
        b: what to call the second.
        explain: whether the statement and the rows of the invariant are printed too.
        conditions: whether conditions were looked for.
        layers: what is known of both as layers, see `dsfc.prover.condition_rules.layers`.
    """
    match verdict:
        case ProvedWhereDefined(point=point, second=second):
            lines = report(verdict.proved, a, b, explain).splitlines()
            lines[0] = f"{a} = {b}: {said(verdict.proved)} where both have values"
            lines += [
                f"  apart      {(a, b)[second]} has no value, and {(b, a)[second]} has one, at",
                *(f"    {name} = {entries_text(values)}" for name, values in point.values),
            ]
        case Proved(certificate) | AtSizes(certificate):
            lines = [f"{a} = {b}: {said(verdict)}", *_stated(certificate.claim, explain)]
            lines += [
                _defined(verdict.certificate.defined, verdict.unseen),
                *_reach(verdict),
                *(f"  law        {text}" for text in relation_lines(*_steps(verdict)[0])),
                f"  {verdict.rule:<9}  {verdict.how}, accepted by the trusted kernel",
            ]
            if explain:
                lines += [
                    f"    {row_text(row)} = 0" for _, rows in _steps(verdict) for row in rows.rows
                ]
        case Refuted(certificate, gap, shortest):
            witness, claim = verdict.witness, certificate.claim
            lines = [f"{a} = {b}: refuted", *_stated(claim, explain)]
            less = "; shorter ones agree at these sizes" if shortest and witness.length > 1 else ""
            lines += [
                f"  sizes      {_sizes(claim)}",
                f"  length     {witness.length}{less}",
                "  point",
                *(f"    {name} = {entries_text(values)}" for name, values in witness.values),
                f"  output     token {witness.token}, entry {list(witness.index)}",
                f"    {a}: {number_text(gap.a)}",
                f"    {b}: {number_text(gap.b)}",
                *names_line(claim, a, b),
                "  open       under what conditions they are equal"
                + (", none of which were found" if conditions else " (--conditions)"),
            ]
        case Conditionally():
            lines = _conditional(verdict, a, b, explain, layers)
        case Unknown():
            lines = [f"{a} = {b}: unknown", f"  obstacle   {verdict.obstacle}"]
            lines += [f"  tried      {t}" for t in verdict.tried]
            lines += [f"  to decide  {verdict.decides}"]
    return "\n".join(lines) + "\n"


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Returns a verdict for tools; the certificate is a document of its own."""
    match verdict:
        case ProvedWhereDefined(point=lacked, second=second):
            lacking = {n: [_number(v) for v in values] for n, values in lacked.values}
            document = as_json(verdict.proved)
            return document | {"verdict": "proved where both have values",
                            "without_value": "second" if second else "first",
                            "point": lacking}  # fmt: skip
        case Proved(certificate) | AtSizes(certificate):
            sizes = dict(certificate.claim.sizes)
            name = "proved" if isinstance(verdict, Proved) else "proved at sizes"
            return {"verdict": name, "statement": "EQ", "sizes": sizes,
                    "every": list(certificate.claim.every), "at": _fixed(verdict),
                    "rule": verdict.rule, "rows": len(verdict.invariant.rows),
                    "values": _values(certificate.claim),
                    "defined": _somewhere(certificate.defined)}  # fmt: skip
        case Refuted(certificate, gap, shortest):
            witness = verdict.witness
            point = {n: [_number(v) for v in values] for n, values in witness.values}
            return {"verdict": "refuted", "statement": "EQ",
                    "sizes": dict(certificate.claim.sizes),
                    "values": _values(certificate.claim), "length": witness.length,
                    "shortest": shortest, "point": point, "token": witness.token,
                    "index": list(witness.index), "a": _ends(gap.a),
                    "b": _ends(gap.b)}  # fmt: skip
        case Conditionally(certificate):
            return _conditional_json(verdict)
    return {"verdict": "unknown", "statement": "EQ", "obstacle": verdict.obstacle,
            "tried": list(verdict.tried), "decides": verdict.decides}  # fmt: skip


def _points(count: int) -> str:
    return "1 point shows" if count == 1 else f"{count} points show"


def _conditional(verdict: Conditionally, a: str, b: str, explain: bool, layers: str) -> list[str]:
    claim, proof = alpha_rename(verdict.certificate.claim), verdict.proof
    assert proof.holds is not None
    texts = ConditionText(claim, state(claim, False))
    rules = Rules(texts, proof)
    lines = [
        f"{a} = {b}: {rules.sentence(layers)}",
        "  verdict    proved under conditions",
        f"  statement  {STATEMENT}, where the conditions hold at every token",
    ]
    lines += _premises(claim)
    if verdict.certificate.claim.apart:
        apart = ", ".join(verdict.certificate.claim.apart)
        lines.append(f"  apart      {apart} of the second, and not the first's")
    if claim.free:
        what = "those that feed states and outputs are taken for inputs, each in its range"
        lines.append(f"  values     {what}")
    lines.append(f"  sizes      {reach(claim)}; this version proves nothing of others")
    lines += open_sizes(claim)
    lines += rules.lines()
    every = texts.degenerate()
    for x in every if explain else every[:1]:
        lines.append(f"  degenerate if these are functions of their own token each: {x}")
    if len(every) > 1 and not explain:
        lines.append(f"  {'':<10} and {len(every) - 1} more like this (--explain)")
    if claim.case:
        lines.append(f"  case       {a} is {b} with these values of {b}'s own parameters")
    inside = texts.inside()
    if inside is not None:
        where = f", where {' and '.join(inside[1])}" if inside[1] else ""
        lines.append(f"  inside     {a} is {b} with {', '.join(inside[0])} as said{where}")
    lines.append(
        f"  holds      at a point of {_tokens(proof.holds.length)} whose output is not 0"
        f"; {_points(len(proof.needed))} what is needed"
    )
    lines.append(f"  invariant  {len(proof.invariant.rows)} rows, accepted by the trusted kernel")
    if explain:
        lines += [f"    {row_text(row)} = 0" for row in proof.invariant.rows]
    timed = [n for n in proof.needed if any(texts.reads_back(k) for k in n.without)]
    for n in timed or proof.needed[-1:]:
        if not explain:
            a_value, b_value = Evaluated(claim, state(claim, False).symbols, n.point).outputs()
            lines.append(
                f"  otherwise  at a point of {_tokens(n.point.length)} without the last rule"
                f" {a} is {number_text(a_value)}, {b} {number_text(b_value)}"
            )
            continue
        lines.append("  otherwise  with all conditions but these: "
                     + "; ".join(t for f, t in map(texts.spelled, texts.lines())
                                 if set(f) & set(n.without)))  # fmt: skip
        lines += _point(claim, texts, n.point, a, b)
    if explain:
        lines += ["  entry by entry", *(f"    {text}" for text in texts.entries())]
        lines.append("  holds at")
        lines += _point(claim, texts, proof.holds, a, b)
    return lines


def _point(claim: Claim, texts: ConditionText, point: Point, a: str, b: str) -> list[str]:
    """A point, what is 0 throughout left out, with both outputs."""
    out = [
        f"    {texts.plain(name if '[' in name else name + '[]')} = {values_text(entries)}"
        for name, entries in point.values
        if any(p for p, *_ in entries)
    ]
    left, right = Evaluated(claim, state(claim, False).symbols, point).outputs()
    out.append(f"    token {point.token}, entry {list(point.index)}: "
               f"{a} {number_text(left)}, {b} {number_text(right)}")  # fmt: skip
    return out


def _conditional_json(verdict: Conditionally) -> dict[str, Any]:
    claim, proof = alpha_rename(verdict.certificate.claim), verdict.proof
    texts = ConditionText(claim, state(claim, False))
    needed = {k for n in proof.needed for k in n.without}
    split = texts.inside()
    inside = {"values": list(split[0]), "where": list(split[1])} if split else None
    return {
        "verdict": "proved under conditions", "statement": "COND", "free": claim.free,
        "case": claim.case, "values": _values(claim),
        "sizes": dict(claim.sizes), "rows": len(proof.invariant.rows),
        "conditions": [{"text": text, "needed": family[0] in needed,
                        "forced": family[0] in proof.forced}
                       for family, text in map(texts.spelled, texts.lines())],
        "over_time": texts.over_time(), "hence": texts.consequences(),
        "varied": list(proof.varied), "apart": list(verdict.certificate.claim.apart),
        "degenerate": texts.degenerate(), "inside": inside,
        "otherwise": as_json(verdict.otherwise),
    }  # fmt: skip


def shown(accepted: Accepted) -> list[str]:
    """Returns, line by line, what a certificate that was accepted says besides the two mixers.

    Args:
        accepted: with the two values, where difference is shown.
    """
    claim, gap = accepted.claim, accepted.gap
    out = _premises(claim)
    if claim.apart:
        out.append(f"  apart      {', '.join(claim.apart)} of the second, and not the first's")
    if claim.free:
        out.append("  values     those that feed states and outputs are taken for inputs")
    if claim.conditions:
        plain = alpha_rename(claim)
        texts = ConditionText(plain, state(plain, False))
        out += ["  conditions", *(f"    {texts.plain(line)}" for _, line in texts.lines())]
    for what in claim.assumed:
        out.append(f"  assumed    {_assumed(what)}, of the first")
    if claim.sizes:
        out.append(f"  sizes      shown at {_sizes(claim)}")
    if accepted.holds is not None:
        tokens = _tokens(accepted.holds.length)
        out.append(f"  holds      at a point of {tokens} whose output is not 0")
    elif claim.equal and claim.case:
        out.append(first_defined(accepted.defined, "the certificate has none"))
    elif claim.equal and not claim.conditions:
        out.append(_defined(accepted.defined, "the certificate has none"))
    if gap is not None:
        out.append(f"  outputs    {number_text(gap.a)} and {number_text(gap.b)}")
    return out


def _assumed(what: Assumption) -> str:
    """An assumption as a spec writes it."""
    compared = f"{text(what.left)} {what.relation} {text(what.right)}"
    over = f" for {what.earlier} {'<=' if what.own else '<'} i" if what.earlier else ""
    return compared + over


def said(verdict: Equal) -> str:
    """Returns a proof as a verdict: "proved", or "proved for n = 2 alone"."""
    if not verdict.fixed:
        return "proved"
    return f"proved for {_listed(verdict.fixed)} alone"


def _defined(point: Somewhere | None, why: str = "") -> str:
    """Where both outputs have values, in a line."""
    if point is None:
        return f"  defined    wherever both outputs have values; no such point is shown ({why})"
    return (
        f"  defined    wherever both outputs have values, as at a point of {_tokens(point.length)}"
    )


def first_defined(point: Somewhere | None, why: str) -> str:
    """Where the first has an output, if it is a case of the second, in a line."""
    if point is None:
        return f"  defined    wherever the first has an output; no such point is shown ({why})"
    return (
        f"  defined    wherever the first has an output, as at a point of {_tokens(point.length)}"
    )


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"


def open_sizes(claim: Claim) -> list[str]:
    """The declared sizes that a statement does not speak of, in a line, if there are any."""
    plain = alpha_rename(claim)
    others = unexamined(plain.a, plain.b, dict(plain.sizes))
    return [f"  open       the declared {_listed(others)}"] * bool(others)


def _somewhere(point: Somewhere | None) -> dict[str, Any] | None:
    if point is None:
        return None
    values = {n: [_number(v) for v in entries] for n, entries in point.values}
    return {"length": point.length, "point": values}


def _stated(claim: Claim, explain: bool) -> list[str]:
    return [f"  statement  {STATEMENT}"] * explain + _premises(claim)


def _premises(claim: Claim) -> list[str]:
    """Lines about names that `--map` identifies, and about values that one mixer alone allows."""
    pairs = [f"{theirs} for {ours}" for ours, theirs in claim.names]
    lines = [f"  names      the second reads {', '.join(pairs)}"] * bool(pairs)
    for name, (first, second) in _values(claim).items():
        lines.append(f"  values     {name} that both allow: it is {first} in the first, and "
                     f"{second} in the second")  # fmt: skip
    return lines


def _values(claim: Claim) -> dict[str, tuple[str, str]]:
    """Names that the two mixers declare in different ranges → both ranges, in words."""
    return {name: (_RANGES[a], _RANGES[b]) for name, (a, b) in ranges(claim).items()}


def range_conditions(claim: Claim) -> list[str]:
    """Returns the ranges that one mixer promises and the other does not, each as a condition."""
    return [
        f"{name} is {_RANGES[promise]}"
        for name, promised in ranges(claim).items()
        for promise in promised
        if promise is not Constraint.NONE
    ]


def reach(claim: Claim) -> str:
    """Returns for which sizes something is claimed: "for all h, p, for n = 2 alone".

    A difference is shown at its sizes, and is one of the mixers: "at h = 1, n = 2".
    """
    if not claim.equal:
        return f"at {_sizes(claim)}"
    copies = {d.axis.name for s in (claim.a, claim.b) for d in s.axes if d.axis.copy_of}
    every = [name for name in claim.every if name not in copies]
    fixed = [(n, k) for n, k in claim.sizes if n not in (*claim.every, *copies)]
    parts = [f"for all {', '.join(every)}"] * bool(every)
    return ", ".join((*parts, *[f"for {_listed(fixed)} alone"] * bool(fixed)))


def _reach(verdict: Equal) -> list[str]:
    """For which sizes a proof holds, where it was done, and why not for all."""
    claim, reasons = verdict.certificate.claim, dict[str, list[str]]()
    for name, why in _fixed(verdict).items():
        reasons.setdefault(why, []).append(name)
    from_few = claim.every and claim.sizes and not verdict.same
    shown = f" (from {_sizes(claim)})" if from_few else ""
    lines = [f"  sizes      {reach(claim)}{shown}"]
    lines += [f"    not for all {', '.join(n)}: {why}" for why, n in reasons.items()]
    if verdict.fixed:
        lines.append("  open       other sizes (--size)")
    return lines


def _fixed(verdict: Equal) -> dict[str, str]:
    """Axes that a proof speaks of at one size only, with the reasons."""
    claim = verdict.certificate.claim
    left = [n for n, _ in claim.sizes if n not in claim.every]
    why = dict[str, str]()
    for shown, proof in _steps(verdict) if left else ():
        written = state(shown, proof.entries, tuple(map(law, proof.relations)))
        why = unlifted(shown, proof, written) | why
    return {n: why.get(n, "not claimed") for n in left}


def _steps(verdict: Equal) -> tuple[tuple[Claim, Invariant], ...]:
    """The claims that rows show, first that the outputs are equal, each with its rows."""
    claim, proof = verdict.certificate.claim, verdict.proof
    return steps(claim, proof) if isinstance(proof, TwoWays) else ((claim, verdict.invariant),)


def _sizes(claim: Claim) -> str:
    return _listed(claim.sizes)


def _listed(sizes: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes)


def row_text(row: Row) -> str:
    """Returns a row as a sum of state entries with coefficients, its pivot first."""
    ordered = sorted(row.terms, key=lambda t: t[0] != row.pivot)
    parts = [_product(cells, coefficient) for cells, coefficient in ordered]
    return " + ".join(parts).replace("+ -", "- ").replace("$", "").replace("@0", "")


def _product(cells: CellMonomial, coefficient: Coefficient) -> str:
    terms = [
        "*".join([str(c)] * (c not in (1, -1) or not m) + [_power(*f) for f in m])
        if c != -1 or not m
        else "-" + "*".join(_power(*f) for f in m)
        for m, c in coefficient
    ]
    states = " ".join(cells)
    if terms in (["1"], ["-1"]) and cells:
        return states if terms == ["1"] else f"-{states}"
    inner = " + ".join(terms)
    return f"({inner}) {states}".rstrip() if len(terms) > 1 else f"{inner} {states}".rstrip()


def _power(name: str, exponent: int) -> str:
    return name if exponent == 1 else f"{name}^{exponent}"


def _number(v: Number) -> str:
    re, im = Fraction(v[0], v[1]), Fraction(v[2], v[3])
    return str(re) if not im else f"{re} + {im} i"


def entries_text(values: tuple[Number, ...]) -> str:
    """Returns the entries of an array, as fractions."""
    inner = ", ".join(_number(v) for v in values)
    return inner if len(values) == 1 else f"[{inner}]"


def number_text(value: Complex) -> str:
    """Returns an exact value as a fraction, another as a decimal with its bound."""
    re = _real(value.re)
    return re if value.is_real else f"{re} + i ({_real(value.im)})"


def _real(x: Real) -> str:
    if x.exact and is_short(x.low, 40):
        return str(x.low)
    error = decimal_text(x.high - x.low, 1) if x.high > x.low else "5e-324"
    return f"{decimal_text(x.low, 15)} (error below {error})"


def is_short(value: Fraction, most: int) -> bool:
    """Returns whether a fraction has at most so many characters; long ones are not written out."""
    bits = value.numerator.bit_length() + value.denominator.bit_length()
    return bits <= 4 * most and len(str(value)) <= most


def decimal_text(value: Fraction, digits: int) -> str:
    """Returns a number as a decimal of some digits, one that no double holds too."""
    try:
        near = float(value)
    except OverflowError:
        near = 0.0
    if near or not value:
        return f"{near:.{digits}g}"
    with localcontext(prec=digits + 3, Emax=MAX_EMAX, Emin=MIN_EMIN):
        return f"{Decimal(value.numerator) / value.denominator:.{digits}g}"


def _ends(value: Complex) -> dict[str, list[str]]:
    parts = {"re": value.re, "im": value.im}
    return {name: [_whole(x.low), _whole(x.high)] for name, x in parts.items()}


def _whole(value: Fraction) -> str:
    """A fraction with all its digits, of which Python's integers write no more than 4,300."""
    above, below = Decimal(value.numerator), Decimal(value.denominator)
    return str(above) if below == 1 else f"{above}/{below}"
