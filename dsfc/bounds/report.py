"""A verdict on a bound as text and as JSON."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dsfc.bounds.chain import Step
from dsfc.bounds.decide import Undecided, Verdict, Within
from dsfc.bounds.form import Form
from dsfc.bounds.pair import Bound, Gap, Magnitude, Question, Range, Ratio, Subject
from dsfc.bounds.rules import STATEMENTS
from dsfc.bounds.witness import Apart, Observed
from dsfc.expr.interval import Interval
from dsfc.expr.over_time import Past
from dsfc.expr.text import text
from dsfc.expr.tree import Expr
from dsfc.prover.report import entries_text, number_text


def report(verdict: Verdict, a: str, b: str, explain: bool = False) -> str:
    """Returns a verdict as text.

    Args:
        verdict: what was found.
        a: what to call the first mixer.
        b: what to call the second.
        explain: whether all inequalities are printed, and not those of gaps alone.
    """
    match verdict:
        case Within(chain, observed):
            question = chain.question
            lines = [
                f"{a} = {b} within {number(question.within)}: proved",
                *_asked(question),
                f"  bound      {number(chain.bound)}, {len(chain.steps)} inequalities, checked",
                _seen(observed),
                "  chain",
            ]
            kept = chain.steps if explain else [s for s in chain.steps if _matters(s)]
            lines += [f"    {line}" for step in kept for line in step_lines(step)]
        case Apart(question, point):
            lines = [
                f"{a} = {b} within {number(question.within)}: refuted",
                *_asked(question),
                f"  length     {point.length}",
                "  point",
                *(f"    {name} = {entries_text(values)}" for name, values in point.values),
                f"  output     token {point.token}, entry {list(point.index)}",
                f"    {a}: {number_text(verdict.a)}",
                f"    {b}: {number_text(verdict.b)}",
            ]
        case Undecided(question, obstacle, bound, observed):
            proved = "none" if bound is None else f"{number(bound)}, which is more than is asked"
            lines = [
                f"{a} = {b} within {number(question.within)}: unknown",
                *_asked(question),
                f"  bound      {proved}",
                f"  obstacle   {obstacle}",
                _seen(observed),
            ]
    return "\n".join(lines) + "\n"


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Returns a verdict for tools."""
    match verdict:
        case Within(chain, observed):
            steps = [
                {"rule": s.rule, "of": subject_text(s.subject), "bound": bound_text(s.bound)}
                for s in chain.steps
            ]
            proof = {"verdict": "proved within", "bound": str(chain.bound), "chain": steps}
            return proof | _question_json(chain.question) | _seen_json(observed)
        case Apart(question, point):
            values = {
                name: [str(Fraction(p, q)) if not r else [str(Fraction(p, q)), str(Fraction(r, s))]
                       for p, q, r, s in entries]
                for name, entries in point.values
            }  # fmt: skip
            outputs = {"a": number_text(verdict.a), "b": number_text(verdict.b)}
            where: dict[str, Any] = {"token": point.token, "index": list(point.index)}
            where |= {"verdict": "refuted", "length": point.length, "point": values}
            return where | outputs | _question_json(question)
        case Undecided(question, obstacle, bound, observed):
            proved = None if bound is None else str(bound)
            known = {"verdict": "unknown", "obstacle": obstacle, "bound": proved}
            return known | _question_json(question) | _seen_json(observed)


def _question_json(question: Question) -> dict[str, Any]:
    return {
        "statement": "WITHIN",
        "within": str(question.within),
        "domain": question.domain.text,
        "sizes": dict(question.sizes),
    }


def _seen_json(observed: Observed) -> dict[str, Any]:
    return {"seen": {"points": observed.points, "worst": observed.worst}}


def _asked(question: Question) -> list[str]:
    """The statement, the domain and the sizes."""
    copies = {d.axis.name for s in (question.a, question.b) for d in s.axes if d.axis.copy_of}
    sizes = ", ".join(f"{name} = {k}" for name, k in question.sizes if name not in copies)
    pairs = [f"{theirs} for {ours}" for ours, theirs in question.names]
    return [
        "  statement  no entry of the outputs differs by more, for equal inputs and parameters,"
        " wherever both have values",
        *[f"  names      the second reads {', '.join(pairs)}"] * bool(pairs),
        f"  domain     {question.domain.text}",
        *[f"  sizes      {sizes}"] * bool(sizes),
    ]


def _seen(observed: Observed) -> str:
    if not observed.points:
        return "  seen       no point of the domain was run"
    return (
        f"  seen       {observed.worst:.3g} at most, on {observed.points} points of the domain"
        " in double precision"
    )


def number(x: Fraction) -> str:
    """Returns a number, rounded upward to three digits where it has more."""
    if x.denominator == 1 and x < 10**6:
        return str(x)
    exponent = len(str(x.numerator)) - len(str(x.denominator))
    exponent -= Fraction(10) ** exponent > x
    scaled = x / Fraction(10) ** exponent  # from 1 to 10
    digits = -((-scaled * 100).__floor__())
    if digits == 1000:
        digits, exponent = 100, exponent + 1
    short = f"{digits // 100}.{digits % 100:02}".rstrip("0").rstrip(".")
    return f"{short}e{exponent}" if abs(exponent) > 2 else str(float(f"{short}e{exponent}"))


def _matters(step: Step) -> bool:
    """Whether a step is worth a line: a gap that is not 0, a ratio, a sum or what decays in it."""
    match step.subject, step.bound:
        case (Gap(), Form() as form):
            return not form.zero
        case (Magnitude(e=e), Form() as form):
            return form.plain is None or isinstance(e, Past)
        case (Ratio(), Interval() as ratio):
            return ratio.low != ratio.high
    return False


def step_lines(step: Step) -> list[str]:
    """Returns an inequality, and on a line of its own the rule that it follows by."""
    lines = [f"{subject_text(step.subject)} {bound_text(step.bound)}"]
    if step.rule in STATEMENTS:
        lines.append(f"    {step.rule}: {STATEMENTS[step.rule]}")
    return lines


def subject_text(subject: Subject) -> str:
    """Returns what is bounded."""
    match subject:
        case Range(second, e):
            return _mark(e, second)
        case Magnitude(second, e):
            return f"|{_mark(e, second)}|"
        case Gap(a, b):
            return f"|{_mark(a, False)} - {_mark(b, True)}|"
        case Ratio(a, b):
            return f"{_mark(b, True)} / ({_mark(a, False)})"


def _mark(e: Expr, second: bool) -> str:
    """An expression, with a mark if it is the second mixer's."""
    return f"({text(e)})'" if second else text(e)


def bound_text(bound: Bound) -> str:
    """Returns a bound, after what is bounded."""
    if isinstance(bound, Interval):
        return f"in [{bound.low:.6g}, {bound.high:.6g}]"
    if bound.zero:
        return "= 0"
    parts = []
    for key, c in bound.terms:
        factors = [number(c)]
        if key.unknown:
            factors.append("sup |" + " - ".join(key.unknown) + "'|")
        for lag in key.lags:
            power = f"m^{lag.p} " if lag.p > 1 else "m " if lag.p else ""
            factors.append(f"{power}{float(lag.ratio):.6g}^m")
        if key.first:
            factors.append("[first token]")
        parts.append(" · ".join(factors))
    return "≤ " + " + ".join(parts)
