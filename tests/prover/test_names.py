"""No verdict depends on what anything is called: mixers, inputs, values, states, axes."""

from __future__ import annotations

import dataclasses
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.derive.again import derived_again
from dsfc.expr.tree import Axis
from dsfc.prover.subsumes import kinds
from dsfc.system.ir import System

sys.path.insert(0, str(Path(__file__).parent))
from renamer import Renamer

del sys.path[0]

LABELS = tomllib.loads((Path(__file__).parent / "labels.toml").read_text(encoding="utf-8"))
FIRST = [
    (file, *table[kind][0][:2])
    for file, table in LABELS.items()
    for kind in table
]  # fmt: skip
"""One pair of each kind of label in each file."""
FAST = 25
SLOW = ("members", "modes")
"""Files whose pairs take long."""
LONG = ("decayed", "wrong_sign")
"""Mixers whose pairs do."""


def tier(k: int, file: str, name: str) -> list[pytest.MarkDecorator]:
    if k % FAST == 0:
        return []
    return [pytest.mark.full if file in SLOW or name in LONG else pytest.mark.ci]


def called_otherwise(a: System, b: System) -> tuple[System, System]:
    """Both with other names, in another order; what had one name in both has one."""
    names: set[str] = set()
    axes: set[Axis] = set()
    for s in (a, b):
        names |= {t.name for t in (*s.inputs, *s.params, *s.buffers, *s.streams, *s.abstracts)}
        names |= {block.state for block in s.blocks} | {o.name for o in s.outputs}
        axes |= {d.axis for d in s.axes}
    new = {n: f"n{len(names) - k:03}" for k, n in enumerate(sorted(names))}
    order = sorted({axis.name for axis in axes}, reverse=True)
    letters = {n: f"a{k:02}" for k, n in enumerate(order)}
    moved = {
        axis: dataclasses.replace(
            axis,
            name=letters[axis.name],
            copy_of=None if axis.copy_of is None else letters[axis.copy_of],
        )
        for axis in axes
    }
    renamer = Renamer(new, moved)
    left, right = (
        derived_again(dataclasses.replace(renamer.system(s, n), doc=None))
        for s, n in ((a, "y"), (b, "x"))
    )
    assert left is not None and right is not None
    return left, right


@pytest.mark.share(2, ci=19)
@pytest.mark.parametrize(
    "file, a, b",
    [pytest.param(*p, marks=tier(k, p[0], p[2])) for k, p in enumerate(FIRST)],
)
def test_no_verdict_depends_on_a_name(system: Callable, file: str, a: str, b: str) -> None:
    left, right = system(file, a), system(file, b)
    before = kinds(left, right, conditions=True)
    after = kinds(*called_otherwise(left, right), conditions=True)
    assert type(before.equal) is type(after.equal)
    assert type(before.forth) is type(after.forth) and type(before.back) is type(after.back)
    assert [len(names) for names in before.slots] == [len(names) for names in after.slots]
