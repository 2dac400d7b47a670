"""Holds mixers to their claims: types them after the derivation and has each decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dsfc.api.pipeline import Compilation
from dsfc.claims.decide import decide
from dsfc.claims.lemmas import LEMMAS, Applies, Open, apply
from dsfc.claims.verdict import Decided
from dsfc.current_search import unheard
from dsfc.derive.derive import derive
from dsfc.diagnostics.catalogue import ClaimForm, Limit
from dsfc.diagnostics.report import DiagnosticError, nearest
from dsfc.expr.statements import Predicate, PredicateName
from dsfc.mixer.resolve import resolve, resolve_claims
from dsfc.prover.sizes import NONE_GIVEN
from dsfc.prover.subsumes import Kinds, kinds
from dsfc.resource_limits import bounded
from dsfc.source import NOWHERE
from dsfc.system.ir import System


def claims(
    compilation: Compilation,
    word: PredicateName | None = None,
    tell: Callable[[tuple[Decided, ...]], None] = unheard,
) -> tuple[Decided, ...]:
    """Returns the claims of a mixer, those of its bases included, each with what was found.

    Args:
        compilation: the mixer.
        word: decides only claims of this predicate; all claims if None.
        tell: takes the claims decided so far, whenever there is one more.

    Raises:
        DiagnosticError: the mixer does not derive, or a claim is ill-formed.
    """
    if not compilation.mixer.claims:
        return ()
    decays = {
        b.state: None if b.decay is None else b.decay.value for b in compilation.structure.blocks
    }
    stated = resolve_claims(compilation.spec, compilation.name, compilation.library, decays)
    if word is not None:
        stated = tuple(s for s in stated if isinstance(s.what, Predicate) and s.what.word is word)
    with bounded(f"decide the claims of {compilation.name}", compilation.text.limits):
        return decide(
            stated,
            compilation.system,
            compilation.structure,
            lambda name: _other(compilation, name),
            tell,
        )


def equivalent(
    a: Compilation,
    b: Compilation,
    names: Sequence[tuple[str, str]] = (),
    conditions: bool = False,
    sizes: Mapping[str, int] = NONE_GIVEN,
    tell: Callable[[Kinds], None] = unheard,
) -> Kinds:
    """Returns whether two mixers are one function of equal inputs and parameters, as `dsfc equiv`.

    Args:
        a: the first mixer, whose limits bound the comparison.
        b: the second.
        names: (name of the second, name of the first) of inputs and parameters that are one.
        conditions: look for conditions under which they are equal, and for cases, too.
        sizes: of some axes, by name; what is asked is asked of these sizes alone.
        tell: takes what is known whenever more is.

    Returns:
        What was found; where time was up before all was examined, what is left is said in `left`.

    Raises:
        ValueError: the mixers cannot have the sizes given.
        DiagnosticError: a mixer does not derive, or E-LIMIT before anything was found.
    """
    first, second = a.system, b.system
    known: list[Kinds] = []

    def keep(answer: Kinds) -> None:
        known.append(answer)
        tell(answer)

    try:
        with bounded(f"compare {a.name} and {b.name}", a.text.limits):
            return kinds(first, second, tuple(names), conditions, sizes, keep)
    except DiagnosticError:
        if not known:
            raise
    except RecursionError:
        if not known:
            what = f"expressions to compare {a.name} and {b.name}"
            deep = Limit(NOWHERE, what=what, size="deeper", bound="Python's stack")
            raise DiagnosticError((deep,)) from None
    return known[-1]


def lemma(
    compilation: Compilation, name: str, names: Mapping[str, str] | None = None
) -> Applies | Open:
    """Returns what a lemma says of a mixer, or which of its hypotheses are not proved.

    Args:
        compilation: the mixer, whose claims state the hypotheses.
        name: of the lemma, such as "T33".
        names: role of the lemma → name in the mixer.

    Raises:
        KeyError: there is no such lemma.
        ValueError: the names are not those of the lemma's roles.
        DiagnosticError: the mixer does not derive, or a claim is ill-formed.
    """
    return apply(LEMMAS[name], compilation.system, claims(compilation), names or {})


def _other(compilation: Compilation, name: str) -> System:
    """The system of another mixer, found as a base would be."""
    home = compilation.library.home(compilation.spec)
    unit = compilation.library.mixer(name, home)
    if unit is not None:
        return derive(resolve(unit.home.spec, name, compilation.library))
    close = nearest(name, compilation.library.names(home))
    asked = next((c for c in compilation.mixer.claims if f"equivalent {name}" in c.text), None)
    span = NOWHERE if asked is None or asked.span is None else asked.span
    raise DiagnosticError((ClaimForm(span, problem=f"there is no mixer `{name}`", nearest=close),))
