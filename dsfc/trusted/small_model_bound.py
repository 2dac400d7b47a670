"""From equality at one size of an axis to equality at every size: the cut-off.

Fix an axis. With everything written out, the difference of two outputs, its denominators multiplied
out, is a sum over indices of that axis, of terms that each hold few of them. Two things are read
off the systems here, for the axis and its copies:

    the count      how many indices one term has at most, those of the output included
    the carriers   arrays, or e^x and elu x + c of arrays x, such that a term with a summed index
                   has, as a factor, an entry of one of them with this index, and that can be 0

Where each summed index is carried, equality at the count (or at any larger size) is equality at
every size: entries of carriers with further indices can be set to 0, which leaves the difference at
a smaller size; see docs/theory/proofs.md. An axis that linear maps of tokens contract has no index
in any term, as long as the values of the maps are generators.

Whatever is not read as such a sum is named as the reason why not. Sizes as numbers do no harm: they
are symbols in a proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dsfc.expr.declarations import Constraint, Tensor
from dsfc.trusted.claim import Claim
from dsfc.trusted.index_form import NoCount
from dsfc.trusted.indices import Indices


def small_model_bound(claim: Claim, entries: bool, numbers: bool = False) -> dict[str, int | str]:
    """Returns the least size of each axis whose proof is one for all, or why there is none.

    Args:
        claim: the two systems.
        entries: whether the proof writes linear maps out; see `dsfc.trusted.claim.Invariant`.
        numbers: whether carriers are to be 0 as numbers in their declared ranges, not as generators
            alone: no value of x makes e^x 0.
    """
    kinds = kinds_of(claim)
    return {name: _count(claim, entries, kinds, name, numbers) for name, _ in claim.sizes}


def unproved(claim: Claim, entries: bool) -> dict[str, str]:
    """Returns the axes that a claim speaks of at one size only, with the reasons.

    A reason is what `small_model_bound` gives, or that the size is below the count.
    """
    out = {}
    sizes = dict(claim.sizes)
    for name, bound in small_model_bound(claim, entries).items():
        if isinstance(bound, str):
            out[name] = bound
        elif sizes[name] < bound:
            out[name] = f"a term has {bound} of its indices, more than {sizes[name]}"
    return out


def kinds_of(claim: Claim) -> dict[str, str]:
    """Returns name → the axis that it is a copy of, or itself; "" where the two disagree."""
    kinds: dict[str, str] = {}
    for system in (claim.a, claim.b):
        for d in system.axes:
            kind = d.axis.copy_of or d.axis.name
            if kinds.setdefault(d.axis.name, kind) != kind:
                kinds[d.axis.name] = ""
    return kinds


def _count(
    claim: Claim, entries: bool, kinds: Mapping[str, str], name: str, numbers: bool
) -> int | str:
    try:
        kind, free = along(claim, kinds, name)
        sides = [Indices(claim, second, entries, kinds, kind) for second in (False, True)]
        a, b = (s.output() for s in sides)
        carried(sides, [s.ways for s in sides], _zeros(claim) if numbers else None)
    except NoCount as e:
        return str(e)
    return max(1, free + max(a.summed + b.below, b.summed + a.below))


def along(claim: Claim, kinds: Mapping[str, str], name: str) -> tuple[str, int]:
    """Returns the axis that a name stands for, and how many indices of it the output has.

    Raises:
        NoCount: the two do not have it in the same way.
    """
    if name not in kinds:
        raise NoCount("no axis of the two has this name")
    kind = kinds[name]
    if not kind:
        raise NoCount("it is a copy of another axis in one of the two")
    outputs = [system.outputs[0].axes for system in (claim.a, claim.b)]
    if [a.name for a in outputs[0]] != [a.name for a in outputs[1]]:
        if any(kinds.get(a.name) in ("", kind) for axes in outputs for a in axes):
            raise NoCount("the outputs are put side by side along other axes")
    return kind, sum(kinds.get(axis.name) == kind for axis in outputs[0])


def carried(
    sides: Iterable[Indices],
    ways: list[dict[str, set[str]]],
    among: frozenset[str] | None = None,
) -> None:
    """Checks that each summed index is carried, by what stands only where it may.

    Args:
        sides: both systems, walked through.
        ways: array → the functions that it stands in; see `Indices`.
        among: what may carry; any carrier if None.

    Raises:
        NoCount: one is not.
    """
    for s in sides:
        for axis, hits in s.needs:
            known = [names for names in hits if among is None or names <= among]
            if not any(all(_free(name, ways) for name in names) for names in known):
                raise NoCount(
                    f"no array that is a factor of every term has the summed index of {axis.name}"
                )


def _zeros(claim: Claim) -> frozenset[str]:
    """Common names of inputs, parameters and maps of a that may have entries 0."""
    return frozenset(
        t.name
        for t in (*claim.a.inputs, *claim.a.params)
        if not isinstance(t, Tensor) or t.constraint in (Constraint.NONE, Constraint.NONNEG)
    )


def _free(carrier: str, ways: list[dict[str, set[str]]]) -> bool:
    """Whether entries of a carrier can be put to 0, and nothing else changes.

    An array stands in no denominator, and in no function but silu, which has none of it below. A
    function of an array is the only one that the array stands in, and stands in none itself.
    """
    way, _, array = carrier.rpartition(" ")
    carriers = set[str]().union(*(known.get(array, ()) for known in ways))
    return carriers <= ({way} if way else {"silu"})
