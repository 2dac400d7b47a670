"""The matrices with numbers put in, against the System run in double precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dsfc.expr.build import ONE, walk
from dsfc.expr.declarations import MapTensor
from dsfc.expr.tree import Axis, Expr, Map, Now, Ref, Time
from dsfc.matrices.kronecker_part import kronecker_part
from dsfc.matrices.linear import linear_parts
from dsfc.matrices.matrices import matrices
from dsfc.system.evaluate import evaluate
from dsfc.system.ir import Drive, Factor, Read, Stage, Term

SIZES = {"d": 3, "h": 2, "n": 2, "p": 2}
LENGTH = 4


def coupled(before):
    """Two states of one stage that read each other: z has no key and is spread over S's keys."""
    (stage,) = before.stages
    (s,) = stage.blocks
    name = {x.name: x for x in before.streams}
    k, v, alpha = (ref(name[n]) for n in ("k", "v", "alpha"))
    n = next(a for a in s.axes if a.name == "n")
    own = Term("S", 1, alpha, frozenset(), ONE)
    into_s = Term("z", 1, k, frozenset(), alpha)
    into_z = Term("S", 1, ONE, frozenset({n}), k)
    axes = tuple(a for a in s.axes if a != n)
    first = replace(s, chain=(Factor((own, into_s), (Drive(k, v),)),), decay=None)
    second = replace(s, state="z", axes=axes, chain=(Factor((into_z,), (Drive(ONE, v),)),))
    reads = before.outputs[0].value.terms
    both = Read((*reads, Term("z", 1, alpha, frozenset(), ONE)))
    output = replace(before.outputs[0], value=both)
    blocks = (first, replace(second, decay=None))
    return replace(before, stages=(Stage(stage.direction, blocks),), outputs=(output,))


def ref(stream):
    return Ref(stream.name, frozenset(stream.axes), stream.field, Time.TOKEN, Now())


@pytest.fixture(scope="module")
def cases(systems):
    return {**systems, "coupled": coupled(systems["before"])}


def numbers(m, value, run, inputs, params):
    """The entries of a SymPy matrix as numbers: each symbol is one entry of a known array."""
    arrays = {**inputs, **run.streams, **params}
    known = {}
    for s in value.free_symbols:
        name, _, index = s.name.partition("_{")
        at = tuple(int(x) for x in index.rstrip("}").split(",")) if index else ()
        known[s] = float(arrays[name][at])
    return np.array(value.xreplace(known).evalf().tolist(), dtype=float)


@pytest.mark.share(4)
@pytest.mark.parametrize("gauge", ["lowered", "paper"])
@pytest.mark.parametrize(
    "name", ["normalized", "ratio", "delta", "before", "both_ways", "dense", "coupled"]
)
def test_the_output_is_phi_times_the_inputs(cases, name, gauge):
    system = cases[name]
    rng = np.random.default_rng(3)
    m = matrices(system, gauge, SIZES, LENGTH)
    maps = maps_of(system)
    params = {
        x.name: rng.normal(size=[SIZES[a.name] for a in (*x.each, *x.target, *x.source)])
        for x in maps
    }
    system = replace(system, params=tuple(MapTensor(x) for x in maps))
    inputs = {"u": rng.normal(size=(LENGTH, SIZES["d"]))}
    run = evaluate(system, inputs, params, SIZES)
    want = run.outputs["y"]
    for i in range(LENGTH):
        y = m.explicit(m.first.y(i), LENGTH)
        got = numbers(m, y, run, inputs, params).ravel()
        np.testing.assert_allclose(got, want[i].ravel(), rtol=1e-9, atol=1e-9)


def maps_of(system):
    found = {}
    roots = [s.value for s in system.streams if isinstance(s.value, Expr)]
    for b in system.blocks:
        for f in b.chain:
            roots += [d.stream for d in f.drives]
            found.update({t.matrix.name: t.matrix for t in f.terms if t.matrix})
    for t in system.outputs[0].value.terms if isinstance(system.outputs[0].value, Read) else ():
        if t.matrix:
            found[t.matrix.name] = t.matrix
    for e in roots:
        found.update({x.map.name: x.map for x in walk(e) if isinstance(x, Map)})
    return list(found.values())


def test_states_that_read_each_other_stand_in_each_other_s_rows(cases):
    (part,) = linear_parts(cases["coupled"])
    form = kronecker_part(cases["coupled"], part, in_paper=False)
    s, z = form.blocks
    assert [n for n, _ in s.coupled] == ["z"] and [n for n, _ in z.coupled] == ["S"]
    assert Axis(2, "n") in s.axes and Axis(2, "n") not in z.axes
