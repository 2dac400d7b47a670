"""Bounds on how far apart two mixers are, on a domain that is given as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from dsfc.api.pipeline import Compilation
from dsfc.bounds.decide import Verdict, decide, question_of
from dsfc.bounds.domain import Domain, Limits, names_of, order_of_complex, two_meanings
from dsfc.diagnostics.catalogue import SyntaxProblem, UnknownName
from dsfc.diagnostics.report import DiagnosticError, nearest
from dsfc.prover.sizes import NONE_GIVEN
from dsfc.resource_limits import bounded
from dsfc.syntax.domain import LENGTH, Bounded, parse_domain
from dsfc.system.ir import System


def within(
    a: Compilation,
    b: Compilation,
    bound: Fraction,
    domain: str = "",
    names: Sequence[tuple[str, str]] = (),
    sizes: Mapping[str, int] = NONE_GIVEN,
) -> Verdict:
    """Returns whether two outputs differ by no more than a bound, as `dsfc equiv --within`.

    Args:
        a: the first mixer, whose limits bound the comparison.
        b: the second.
        bound: the largest difference allowed, of any entry of the output at any token.
        domain: bounds on inputs, parameters, definitions and L, such as "abs(u) <= 2, L <= 4096".
        names: (name of the second, name of the first) of inputs and parameters that are one.
        sizes: of some axes, by name; others are those declared, if they are numbers.

    Raises:
        ValueError: the two mixers cannot be put side by side.
        DiagnosticError: the domain is none of theirs, a mixer does not derive, or E-LIMIT.
    """
    first, second = a.system, b.system
    pairs = tuple(names)
    asked = domain_of(domain, first, second, pairs) if domain.strip() else Domain()
    with bounded(f"compare {a.name} and {b.name}", a.text.limits):
        return decide(question_of(first, second, bound, asked, pairs, sizes))


def domain_of(text: str, a: System, b: System, pairs: tuple[tuple[str, str], ...] = ()) -> Domain:
    """Returns the domain of two mixers that a text states.

    Args:
        text: the bounds.
        a: one mixer.
        b: the other.
        pairs: (name of the second, name of the first) of inputs and parameters that are one.

    Raises:
        DiagnosticError: it is no such text, or speaks of names that neither mixer has, of one that
            means two values, or of an order of complex numbers.
    """
    known = [names_of(s) for s in (a, b)]
    limits, shortest, longest = list[Limits](), 1, None
    for x in parse_domain(text):
        declared = [names[x.name] for names in known if x.name in names]
        if x.name == LENGTH:
            if declared:
                raise _problem(x, "L is the number of tokens, and a mixer calls a value so")
            shortest = max(shortest, int(x.low or 1))
            if x.high is not None:
                longest = int(x.high) if longest is None else min(longest, int(x.high))
            continue
        if not declared:
            close = nearest(x.name, {name for names in known for name in names})
            instead = "" if close is None else f"; did you mean `{close}`?"
            raise DiagnosticError((UnknownName(x.span, name=x.name, instead=instead),))
        if x.axis and not any(axis.name == x.axis for axes in declared for axis in axes):
            raise _problem(x, f"`{x.name}` has no axis `{x.axis}`")
        limit = Limits(x.name, x.low, x.high, x.axis, x.modulus)
        mistake = two_meanings(x.name, b, pairs) or order_of_complex(limit, (a, b))
        if mistake:
            raise _problem(x, mistake)
        limits.append(limit)
    if longest is not None and longest < shortest:
        raise _problem(x, "the bounds on L exclude each other")
    return Domain(tuple(limits), shortest, longest)


def _problem(at: Bounded, problem: str) -> DiagnosticError:
    return DiagnosticError((SyntaxProblem(at.span, problem=problem),))
