"""What every mixer value keeps: well-formedness, text, JSON, independence of order and damage."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.build import mul, num
from dsfc.expr.json import decode, encode
from dsfc.expr.over_time import Run
from dsfc.expr.tree import Bound, Now, Ref
from dsfc.mixer import (
    Library,
    MixerError,
    evaluate,
    render,
    resolve,
    sample,
    sizes,
    verify,
)
from dsfc.mixer.ir import Mixer
from dsfc.source import Source
from dsfc.syntax import ast
from dsfc.syntax.parse import parse
from dsfc.syntax.read import read_source

SPECS = Path(__file__).parents[2] / "specs"
MIXERS = sorted(
    path.stem
    for path in SPECS.glob("*.dsf")
    if "mixer " in path.read_text(encoding="utf-8") and path.stem != "qkv"
    and not re.search(r"^modifier ", path.read_text(encoding="utf-8"), re.MULTILINE)
)  # fmt: skip
Shipped = Callable[[str], Mixer]


def test_all_mixers_of_the_library_are_there() -> None:
    assert len(MIXERS) == 52


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
def test_shipped_mixers_are_well_formed(name: str, shipped: Shipped) -> None:
    verify(shipped(name))


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
def test_json_and_back(name: str, shipped: Shipped) -> None:
    mixer = shipped(name)
    document = json.loads(json.dumps(encode(mixer)))
    again = decode(document, Mixer)
    assert encode(again) == encode(mixer)
    assert again.definitions == tuple(replace(d, span=None) for d in mixer.definitions)
    verify(again)


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
def test_text_is_stable_and_names_everything(name: str, shipped: Shipped) -> None:
    mixer = shipped(name)
    shown = render(mixer)
    assert shown == render(shipped(name))
    held = (*mixer.inputs, *mixer.params, *mixer.buffers, *mixer.definitions, *mixer.states)
    assert all(re.search(rf"^    {item.name} : ", shown, re.MULTILINE) for item in held)
    assert render(mixer, ascii_only=True).isascii() or mixer.doc


def shuffled(spec: ast.Spec, seed: int) -> ast.Spec:
    """The same spec with its definitions and declarations in another order; `use` lines stay."""
    units = []
    for unit in spec.units:
        free = [k for k, item in enumerate(unit.items) if not isinstance(item, ast.Use | ast.Dims)]
        order = list(free)
        random.Random(seed).shuffle(order)
        items = list(unit.items)
        for to, origin in zip(free, order, strict=True):
            items[to] = unit.items[origin]
        units.append(replace(unit, items=tuple(items)))
    return replace(spec, units=tuple(units))


@pytest.mark.share(5)
@pytest.mark.parametrize(
    "name", [name for name in MIXERS if name not in ("lstm", "separable", "slstm")]
)
def test_the_order_of_items_changes_no_value(name: str, shipped: Shipped) -> None:
    one = shipped(name)
    spec = parse(read_source(SPECS / f"{name}.dsf"))
    other = resolve(shuffled(spec, seed=len(name)), name, Library(SPECS))
    known = sizes(one, {d.axis.name: 2 for d in one.axes})
    drawn = sample(one, known, seed=0, length=3)
    assert {d.name for d in one.definitions} == {d.name for d in other.definitions}
    left = evaluate(one, drawn.inputs, drawn.params, known)
    right = evaluate(other, drawn.inputs, drawn.params, known)
    assert all(np.array_equal(left[value], right[value], equal_nan=True) for value in left)


# Damage: whatever is done to a spec, the answer is a mixer or coded diagnostics.

WORD = re.compile(r'[^\W\d]\w*|\d+(?:\.\d+)?|"[^"]*"|->|\S')


def kind(word: str) -> str:
    """Words that may stand for each other: names for names, numbers for numbers."""
    if word in {"input", "param", "buffer", "state", "const"}:
        return "declaration"
    if word in {"positive", "unit", "complex", "nonneg", "nonzero", "backward"}:
        return "flag"
    if word[0].isalpha():
        return "name"
    return "number" if word[0].isdigit() else "sign" if word in "+-*/·⊗^" else word


def damaged(text: str, words: dict[str, list[str]], source: random.Random) -> str:
    """The text with one to three words replaced or doubled."""
    for _ in range(source.choice([1, 1, 2, 3])):
        at = source.choice(list(WORD.finditer(text)))
        word = source.choice(words[kind(at[0])])
        new = f"{at[0]} {word}" if source.random() < 0.1 else word
        text = text[: at.start()] + new + text[at.end() :]
    return text


@pytest.mark.ci
def test_damaged_specs_give_a_mixer_or_diagnostics(tier: str) -> None:
    texts = [read_source(path).text for path in sorted(SPECS.glob("*.dsf"))]
    words: dict[str, list[str]] = {}
    for text in texts:
        for word in WORD.findall(re.sub("#[^\n]*", "", text)):
            words.setdefault(kind(word), []).append(word)
    for text in texts:
        for word in WORD.findall(text):
            words.setdefault(kind(word), [word])
    source, library = random.Random(7), Library(SPECS)
    made = refused = 0
    for _ in range({"ci": 200, "full": 20000}[tier]):
        text = damaged(source.choice(texts), words, source)
        try:
            mixer = resolve(parse(Source("<damaged>", text)), None, library)
        except DiagnosticError as error:
            assert error.diagnostics
            refused += 1
        else:
            verify(mixer)
            made += 1
    assert made > 50 and refused > 50


BIG = [
    "y = u\n" + "\n".join(f"f{k + 1}(x) = f{k}(x) * f{k}(x)" for k in range(30))
    + "\nf0(x) = x * x\nz = f30(u)",
    "f(x) = exp(x) * sin(x)\ny = " + "f(" * 60 + "u" + ")" * 60,
    "f(x) = exp(exp(exp(exp(exp(x)))))\ny = " + "f(" * 50 + "u" + ")" * 50,
    "a0 = u\n" + "\n".join(f"a{k + 1} = exp(a{k})" for k in range(1200)) + "\ny = a1200",
    "state S : d\na0 = 0.5 * S[i-1]\n"
    + "\n".join(f"a{k + 1} = 0.5 * a{k}" for k in range(1200))
    + "\nS = a1200 + u\ny = S",
    *(f"y = {f' {sign} '.join(['u'] * 800)}" for sign in "/-*+"),
    *(pytest.param(f"y = {f' {s} '.join(['u'] * 4000)}", marks=pytest.mark.ci) for s in "/-"),
]  # fmt: skip


@pytest.mark.share(6)
@pytest.mark.parametrize("items", BIG)
def test_large_specs_end(items: str) -> None:
    source = Source("<large>", f"mixer m {{\ndims d\ninput u : d\n{items}\n}}")
    try:
        mixer = resolve(parse(source))
    except DiagnosticError as error:
        assert {d.code for d in error.diagnostics} == {"E-LIMIT"}
    else:
        verify(mixer)


# What verify refuses.


def changed(mixer: Mixer, **fields: object) -> Mixer:
    return replace(mixer, **fields)


def test_verify_refuses_what_no_spec_can_mean(shipped: Shipped) -> None:
    mixer = shipped("ssd")
    (state,) = mixer.states
    first, *rest = mixer.definitions
    stray = replace(first, value=Ref("nowhere", frozenset(), *_scalar(), Now(0)))
    unbound = replace(first, value=_moved(first.value))
    wrong = {
        "is not a stream": changed(mixer, definitions=(stray, *rest)),
        "stands before": changed(mixer, definitions=tuple(reversed(mixer.definitions))),
        "bound by no sum": changed(mixer, definitions=(unbound, *rest)),
        "canonical order": changed(mixer, axes=tuple(reversed(mixer.axes))),
        "stand for two things": changed(mixer, inputs=mixer.inputs * 2),
        "is not defined": changed(mixer, output="z"),
        "does not reach": changed(mixer, definitions=(*mixer.definitions, _extra(first))),
        "another type": changed(mixer, states=(replace(state, update=first.value),)),
        "exactly one": changed(mixer, states=(replace(state, update=None),)),
        "is not a tensor": changed(mixer, params=mixer.params[:-1]),
        "not listed": changed(mixer, axes=mixer.axes[:-1]),
        "window": changed(
            mixer, states=(replace(state, update=Run("l", Now(2), Now(0), state.update)),)
        ),
    }
    for says, value in wrong.items():
        with pytest.raises(MixerError, match=says):
            verify(value)


def _scalar() -> tuple:
    first = Ref("first", frozenset(), 0, 0, Now(0))
    return first.type.field, first.type.time


def _moved(value: object) -> object:
    from dsfc.expr.build import rewrite

    def bound(node: object) -> object:
        if isinstance(node, Ref):
            return Ref(node.name, node.over, node.kind, node.when, Bound("j", 0))
        return None

    return rewrite(value, bound)


def _extra(definition: object) -> object:
    return replace(definition, name="extra", value=mul(num(2), definition.value))
