"""A witness as a program that needs Python and nothing else.

The two definitions are printed entry by entry, as the specs say them: a sum over the past is a sum.
Where a function is not rational the arithmetic of `dsfc.trusted.balls` comes along.
"""

from __future__ import annotations

import re
from importlib.resources import files

from dsfc.prover.prelude import BALLS, COMPLEX, FRACTIONS, NEEDED, TOOLS
from dsfc.prover.printed import BALL_NAMES, Printed
from dsfc.prover.verdict import Refuted
from dsfc.trusted.comparable import array_names
from dsfc.trusted.witness import stored_axes

_HEAD = '''"""{title}

{claim} The point below refutes it: both definitions are run as their specs
say them, with exact fractions{bounds}. Exit code 0: the refutation stands.
"""
'''


def script(refuted: Refuted, a: str, b: str) -> str:
    """Returns the program.

    Args:
        refuted: the refutation.
        a: what to call the first mixer.
        b: what to call the second.

    Raises:
        Obstacle: a definition has a node that is not printed.
    """
    claim, witness = refuted.certificate.claim, refuted.witness
    sizes = dict(claim.sizes)
    sides = [
        Printed("a", claim.a, {}, sizes),
        Printed("b", claim.b, array_names(claim, True), sizes),
    ]
    bodies = [side.definitions() for side in sides]
    functions = set().union(*(side.functions for side in sides))
    imaginary = any(side.is_complex() for side in sides)
    for side in sides:
        side.mark = "c_" if imaginary else ""
    bodies = [side.definitions() for side in sides] if imaginary else bodies
    parts = [
        _HEAD.format(
            title=f"{a} and {b} are not the same function.",
            claim="The statement: equal outputs for equal inputs and parameters of equal names"
            + "".join(f",\n{theirs} of b for {ours} of a" for theirs, ours in claim.names)
            + ".",
            bounds=" and proven bounds" if functions or imaginary else "",
        )
    ]
    if functions or imaginary:
        source = files("dsfc.trusted").joinpath("balls.py").read_text(encoding="utf-8")
        parts += [_without_docstring(source), COMPLEX if imaginary else BALLS]
    else:
        parts.append(FRACTIONS)
    parts.append(TOOLS)
    parts += [f"\n\n{_helper(name, imaginary)}" for name in sorted(functions & NEEDED.keys())]
    parts.append(f"\n\nLENGTH = {witness.length}\nSIZE = {sizes!r}\nGIVEN = {{\n")
    declared = {name: (t, timed) for side in sides for name, t, timed in side.given()}
    for name, entries in witness.values:
        t, timed = declared[name]
        axes = stored_axes(t)
        lengths = [witness.length] * timed + [sizes[x.name] for x in axes]
        parts.append(f"    {name!r}: {{\n")
        for position, (p, q, r, s) in enumerate(entries):
            index = _unflattened(position, lengths)
            number = f"{p}, {q}, {r}, {s}" if r else f"{p}, {q}"
            parts.append(f"        {index!r}: num({number}),\n")
        parts.append("    },\n")
    parts.append("}\n")
    parts += bodies
    at = ", ".join(map(str, (witness.token, *witness.index)))
    other = ", ".join(map(str, (witness.token, *_same_place(refuted))))
    parts.append(
        f"\n\nleft = a_{claim.a.outputs[0].name}({at})\n"
        f"right = b_{claim.b.outputs[0].name}({other})\n"
        f'print("token {witness.token}, entry {list(witness.index)}")\n'
        f'print("a:", shown(left))\nprint("b:", shown(right))\n'
        "assert apart(left, right)\n"
    )
    return "".join(parts)


def _helper(name: str, imaginary: bool) -> str:
    """The text of a function that `balls` does not have; in complex arithmetic all have a mark."""
    if not imaginary:
        return NEEDED[name]
    known = "|".join({*BALL_NAMES.values(), *NEEDED})
    return re.sub(rf"\b({known})\(", r"c_\1(", NEEDED[name])


def _without_docstring(source: str) -> str:
    """The text of a module after its docstring."""
    return source[source.index('"""', 3) + 3 :]


def _unflattened(position: int, lengths: list[int]) -> tuple[int, ...]:
    out: list[int] = []
    for size in reversed(lengths):
        position, k = divmod(position, size)
        out.insert(0, k)
    return tuple(out)


def _same_place(refuted: Refuted) -> tuple[int, ...]:
    claim, place = refuted.certificate.claim, 0
    sizes = dict(claim.sizes)
    for axis, k in zip(claim.a.outputs[0].axes, refuted.witness.index, strict=True):
        place = place * sizes[axis.name] + k
    return _unflattened(place, [sizes[axis.name] for axis in claim.b.outputs[0].axes])
