"""Names of two mixers that look alike and are two: a user may have meant one."""

from __future__ import annotations

from dsfc.expr.declarations import MapTensor, Tensor
from dsfc.system.ir import System
from dsfc.trusted.claim import Claim
from dsfc.trusted.witness import stored_axes


def alike_names(claim: Claim) -> tuple[tuple[str, str], ...]:
    """Returns pairs of names, the second mixer's first, that are spelled alike and not identified.

    Two names are alike where they differ in capitals and underscores alone, and stand for arrays of
    the same axes. A name that both mixers have, or that a claim identifies, is in no pair.
    """
    taken = {name for pair in claim.names for name in pair}
    ours, theirs = _arrays(claim.a), _arrays(claim.b)
    alone = [name for name in ours if name not in theirs and name not in taken]
    out = list[tuple[str, str]]()
    for name, t in theirs.items():
        if name in ours or name in taken:
            continue
        alike = [n for n in alone if _plain(n) == _plain(name) and _axes(ours[n]) == _axes(t)]
        out += [(name, same) for same in alike if len(alike) == 1]
    return tuple(out)


def names_line(claim: Claim, a: str, b: str) -> list[str]:
    """Returns the line of a report that names such pairs, with the option that identifies them.

    Args:
        claim: of two mixers.
        a: what to call the first.
        b: what to call the second.

    Returns:
        one line, or none where no names are alike.
    """
    pairs = alike_names(claim)
    theirs, ours = (", ".join(pair[k] for pair in pairs) for k in (0, 1))
    option = " ".join(f"--map {one}={other}" for one, other in pairs)
    return [f"  names      {ours} of {a} and {theirs} of {b} are two ({option})"] if pairs else []


def _arrays(system: System) -> dict[str, Tensor | MapTensor]:
    return {t.name: t for t in (*system.inputs, *system.params, *system.buffers)}


def _plain(name: str) -> str:
    return name.replace("_", "").casefold()


def _axes(t: Tensor | MapTensor) -> tuple[str, ...]:
    return tuple(a.name for a in stored_axes(t))
