"""The normal form of a System: what two ways of writing one mixer have in common.

Token-wise definitions are put into the expressions that read them, expressions are normalised as
polynomials over atoms, equal blocks are merged, what no output needs is dropped, and states and
streams are numbered in order of their use. The normal form is for comparing: e^{a+b} is written
e^a e^b there, which need not be computed so.
"""

from __future__ import annotations

from dataclasses import replace

from dsfc.expr.build import mul, ones
from dsfc.expr.normal import canonical
from dsfc.expr.polynomial import order_key
from dsfc.expr.tree import Expr
from dsfc.system.ir import (
    FREE,
    Block,
    Cache,
    Drive,
    Factor,
    Read,
    ReadOut,
    Stage,
    Step,
    System,
    Term,
)
from dsfc.system.traverse import map_blocks, map_trees, rewritten
from dsfc.transform.inline import Inliner
from dsfc.transform.order import ordered
from dsfc.transform.record import Record
from dsfc.transform.rename import Renamer


def normal_form(system: System) -> tuple[System, Record]:
    """Returns the normal form of a System, and a record of merged and renamed states.

    The value of the System at every input is the same, wherever its divisions are defined.
    """
    steps: list[Step] = []
    system = _normalised(system)
    while True:
        merged, names = _merged_once(system)
        if not names:
            break
        steps += [Step("merge", f"{old} is {new}") for old, new in names.items()]
        system = merged
    system = ordered(system, reached_only=True)
    names = _numbered(system)
    made = replace(Renamer(names).system(system), definition=(), derivation=())
    return made, Record("normal form", tuple(steps), tuple(names.items()))


def _normalised(system: System) -> System:
    inline = Inliner(system).of

    def normal(e: Expr) -> Expr:
        return _with_axes(canonical(inline(e)), e)

    def tree(r: ReadOut) -> ReadOut:
        # What no finite state holds is compared as it is written.
        r = r if isinstance(r, Cache) else rewritten(r, normal)
        return replace(r, terms=_sorted(r.terms)) if isinstance(r, Read) else r

    def block(b: Block) -> Block:
        b = rewritten(b, normal)
        return replace(b, chain=tuple(map(_sorted_factor, b.chain)), provenance=None)

    made = map_blocks(map_trees(system, tree), block)
    return replace(
        made,
        streams=tuple(
            replace(s, value=normal(s.value), provenance=None)
            if isinstance(s.value, Expr)
            else replace(s, provenance=None)
            for s in made.streams
        ),
        outputs=tuple(replace(o, provenance=None) for o in made.outputs),
    )


def _with_axes(value: Expr, like: Expr) -> Expr:
    """A normal form with the axes that only `ones` gave put back."""
    missing = like.axes - value.axes
    return mul(value, ones(missing)) if missing else value


def _sorted(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    return tuple(
        sorted(
            terms,
            key=lambda t: (t.source, t.lag, sorted(t.over), order_key(t.left), order_key(t.right)),
        )
    )


def _sorted_factor(f: Factor) -> Factor:
    drives = [Drive(d.key, d.stream, FREE) for d in f.drives]
    drives.sort(key=lambda d: (order_key(d.key), order_key(d.stream)))
    return Factor(_sorted(f.terms), tuple(drives))


def _merged_once(system: System) -> tuple[System, dict[str, str]]:
    """States of stages of their own with the same update become one."""
    known: dict[object, str] = {}
    names: dict[str, str] = {}
    kept: list[Stage] = []
    for s in system.stages:
        if len(s.blocks) == 1:
            (b,) = s.blocks
            key = (s.direction, b.axes, b.field, Renamer({b.state: ""}).of(b.chain))
            if key in known:
                names[b.state] = known[key]
                continue
            known[key] = b.state
        kept.append(s)
    renamer = Renamer(names)
    return renamer.system(replace(system, stages=tuple(kept))), names


def _numbered(system: System) -> dict[str, str]:
    names = {s.name: f"s{k}" for k, s in enumerate(system.streams, 1)}
    return names | {b.state: f"h{k}" for k, b in enumerate(system.blocks, 1)}
