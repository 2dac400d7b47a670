"""A chain, or a point that refutes a bound, as a JSON document that can be checked again."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction

from dsfc.bounds.chain import Chain, Step, check, side_by_side
from dsfc.bounds.form import Form
from dsfc.bounds.pair import Gap, Magnitude, Question, Range, Ratio
from dsfc.bounds.witness import Apart, Draws, execute
from dsfc.expr.interval import INF, Interval
from dsfc.expr.json import decode, encode
from dsfc.trusted.balls import NotDefined
from dsfc.trusted.claim import Claim, Witness
from dsfc.trusted.derived import check_derived
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.legal import kept
from dsfc.trusted.rejected import Rejected

FORM = "dsfc-bound/1"
"""The format of a document."""

SIZE_LIMIT = 64 << 20
"""Characters of a document, at most."""


@dataclass(frozen=True, slots=True)
class Ends:
    """An interval as fractions; an end that is None is infinite."""

    low: Fraction | None
    high: Fraction | None
    open_low: bool
    open_high: bool


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step of a chain."""

    subject: Range | Magnitude | Gap | Ratio
    rule: str
    bound: Ends | Form


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of a document: the steps of a proof and its bound, or a point."""

    question: Question
    steps: tuple[StoredStep, ...]
    bound: Fraction | None
    point: Witness | None


def write(shown: Chain | Apart) -> str:
    """Returns the text of a document, the same on every machine."""
    if isinstance(shown, Apart):
        stored = Stored(shown.question, (), None, shown.point)
    else:
        steps = tuple(StoredStep(s.subject, s.rule, _ends(s.bound)) for s in shown.steps)
        stored = Stored(shown.question, steps, shown.bound, None)
    document = {"format": FORM, **encode(stored)}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"


def is_bound(text: str) -> bool:
    """Returns whether a text is a document of this format, as far as its beginning says."""
    return text.startswith(f'{{"format":"{FORM}"')


def check_text(text: str) -> Chain | Apart:
    """Checks a document, everything in it computed again.

    Raises:
        Rejected: it does not show what it claims; the text says why.
    """
    if len(text) > SIZE_LIMIT:
        raise Rejected(f"the certificate is longer than {SIZE_LIMIT} characters")
    try:
        document = json.loads(text)
        if not isinstance(document, dict) or document.get("format") != FORM:
            raise Rejected("not a certificate of a bound")
        if set(document) != {"format", "axes", "nodes", "value"}:
            raise Rejected("not a certificate: it has other parts")
        stored: Stored = decode(document, Stored)
        question = stored.question
        side_by_side(question)
        if kept(question.a, question.b, dict(question.sizes), 1) is None:
            raise Rejected("no sizes keep what both mixers declare")
        sizes = {d.axis.name: 1 for s in (question.a, question.b) for d in s.axes}
        check_derived(Claim(question.a, question.b, question.names, tuple(sorted(sizes.items()))))
        if stored.point is not None:
            if stored.steps or stored.bound is not None:
                raise Rejected("a point stands beside a chain")
            return execute(Draws(question), stored.point)
        if stored.bound is None:
            raise Rejected("there is neither a bound nor a point")
        steps = tuple(Step(s.subject, s.rule, _interval(s.bound)) for s in stored.steps)
        chain = Chain(question, steps, stored.bound)
        check(chain)
        return chain
    except Rejected:
        raise
    except (Obstacle, NotDefined) as e:
        raise Rejected(f"the claim is beyond this check: {e}") from None
    except RecursionError:
        raise Rejected("the claim is nested too deeply") from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as e:
        raise Rejected(f"a part is malformed: {e}") from None


def _ends(bound: Interval | Form) -> Ends | Form:
    if isinstance(bound, Form):
        return bound
    low, high = (None if math.isinf(x) else Fraction(x) for x in (bound.low, bound.high))
    return Ends(low, high, bound.open_low, bound.open_high)


def _interval(bound: Ends | Form) -> Interval | Form:
    """A bound as it was; an end that is no double is refused.

    Raises:
        Rejected: an end is no double.
    """
    if isinstance(bound, Form):
        return bound
    low = -INF if bound.low is None else float(bound.low)
    high = INF if bound.high is None else float(bound.high)
    ends = ((bound.low, low), (bound.high, high))
    if any(x is not None and (math.isinf(y) or Fraction(y) != x) for x, y in ends) or low > high:
        raise Rejected("an end of an interval is no double")
    return Interval(low, high, bound.open_low, bound.open_high)
