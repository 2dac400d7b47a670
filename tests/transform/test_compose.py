"""Composition of Systems is composition of functions."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import hand_built
import pytest
import torch
from draws import by_definition, close, draw, outputs

from dsfc.expr.build import prim
from dsfc.expr.declarations import Tensor
from dsfc.expr.tree import Field
from dsfc.transform.compose import CompositionError, added, kronecker, multiplied, series
from dsfc.transform.masks import masked, with_starts

SIZES, ALL = hand_built.SIZES, hand_built.ALL
OVER_D = ["complex_lti", "dense", "coupled", "cascade"]
OVER_HP = ["attention", "gated", "ratio", "delta", "rotating", "cached"]


def drawn(system, length=5, seed=0):
    return draw(system, length, SIZES, torch.Generator().manual_seed(seed))


def values_of(record, values):
    """Values of a System under the names it was given."""
    names = dict(record.names)
    return {names.get(n, n): v for n, v in values.items()}


@pytest.mark.parametrize("first", OVER_D)
@pytest.mark.parametrize("second", ["gated", "dense", "cached"])
def test_series_is_composition(first, second):
    a, b = ALL[first], ALL[second]
    made, record = series(a, b, into="u")
    va, ia = drawn(a)
    vb, ib = drawn(b, seed=1)
    middle = outputs(a, 5, SIZES, va, ia)["y"]
    want = outputs(b, 5, SIZES, vb | {"u": middle}, ib)["y"]
    given = va | {
        n: v for n, v in values_of(record, vb).items() if n not in ("u", record.renamed("u"))
    }
    got = outputs(made, 5, SIZES, given, ia | values_of(record, ib))["y"]
    assert close(got, want)


@pytest.mark.parametrize(("compose", "combine"), [(added, torch.add), (multiplied, torch.mul)])
@pytest.mark.parametrize(
    ("first", "second"), [("gated", "ratio"), ("attention", "attention"), ("cascade", "dense")]
)
def test_sums_and_products(first, second, compose, combine):
    a, b = ALL[first], ALL[second]
    made, record = compose(a, b)
    va, ia = drawn(a)
    vb, ib = drawn(b, seed=1)
    vb["u"] = va["u"]
    want = combine(outputs(a, 5, SIZES, va, ia)["y"], outputs(b, 5, SIZES, vb, ib)["y"])
    got = outputs(made, 5, SIZES, va | values_of(record, vb), ia | values_of(record, ib))["y"]
    assert close(got, want)


def kernel(system, values):
    """Φ(i, j) of a System that is linear in its input, by its answers to impulses."""
    length, _ = values["u"].shape
    rows = []
    for j in range(length):
        impulse = torch.zeros_like(values["u"])
        impulse[j] = 1
        rows.append(outputs(system, length, SIZES, values | {"u": impulse})["y"])
    return torch.stack(rows, 1)


def filtering():
    """y = Σ_n C h with a fixed real decay per (d, n)."""
    d, n = hand_built.D, hand_built.N
    lam = prim("sigmoid", hand_built.param("a", d, n))
    drive = (hand_built.param("B", d, n), hand_built.U)
    block = hand_built.block("x", (d, n), hand_built.diagonal("x", lam, drive))
    y = hand_built.read("x", hand_built.param("C", d, n), (n,))
    params = tuple(Tensor(name, (d, n)) for name in ("a", "B", "C"))
    return hand_built.system("filtering", (), (hand_built.forward(block),), y, (d,), params)


def test_kronecker_multiplies_kernels():
    a = filtering()
    b = filtering()
    made, record = kronecker(a, b)
    va, _ = drawn(a)
    vb, _ = drawn(b, seed=1)
    vb["u"] = va["u"]
    assert len(made.blocks[0].axes) == 3
    got = kernel(made, va | values_of(record, vb))
    want = kernel(a, va) * kernel(b, vb)
    assert close(got, want)


def test_refusals():
    with pytest.raises(CompositionError, match="no input"):
        series(ALL["dense"], ALL["gated"], into="v")
    with pytest.raises(CompositionError, match="different types"):
        series(ALL["gated"], ALL["gated"], into="u")
    with pytest.raises(CompositionError, match="different types"):
        added(ALL["gated"], ALL["dense"])
    with pytest.raises(CompositionError, match="not one read"):
        kronecker(ALL["gated"], ALL["delta"])
    with pytest.raises(CompositionError, match="ends at ends"):
        with_starts(ALL["cascade"])


NO_LAGS = ["attention", "ratio", "delta", "complex_lti", "rotating", "coupled", "dense"]


@pytest.mark.parametrize("name", NO_LAGS)
def test_padding_is_the_identity(name):
    system = ALL[name]
    if name == "dense":  # its filter would read padded inputs
        system = replace(system, streams=(replace(system.streams[0], value=hand_built.U),))
    values, initial = drawn(system)
    made, record = masked(system)
    keep = torch.tensor([1.0, 0, 1, 0, 0, 1, 1, 0], dtype=torch.float64)
    real = keep.bool()
    spread = {
        t.name: torch.randn((8, *values[t.name].shape[1:]), dtype=values[t.name].dtype)
        for t in system.inputs
    }
    short = values | {n: v[real] for n, v in spread.items()}
    want, ends = by_definition(system, 4, SIZES, short, initial)
    given = values | spread | {record.renamed("mask"): keep}
    got, finals = by_definition(made, 8, SIZES, given, initial)
    assert close(got["y"][real], want["y"])
    assert all(close(finals[s], ends[s]) for s in ends)


@pytest.mark.parametrize(
    "name", ["attention", "gated", "ratio", "delta", "complex_lti", "rotating", "coupled"]
)
def test_packed_sequences_are_computed_apart(name):
    system = ALL[name]
    made, record = with_starts(system)
    values, _ = drawn(system, 9)
    start = torch.zeros(9, dtype=torch.float64)
    cuts = [0, 2, 3, 7, 9]
    start[cuts[:-1]] = 1
    got = outputs(made, 9, SIZES, values | {record.renamed("start"): start})["y"]
    for a, b in pairwise(cuts):
        part = values | {t.name: values[t.name][a:b] for t in system.inputs}
        assert close(got[a:b], outputs(system, b - a, SIZES, part)["y"])


def test_complex_outputs_do_not_mix_with_real_ones():
    system = ALL["dense"]
    twisted = replace(system, outputs=(replace(system.outputs[0], field=Field.COMPLEX),))
    with pytest.raises(CompositionError):
        added(system, twisted)
