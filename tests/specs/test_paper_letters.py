"""Letters of papers in shipped specs: of names that there are; formulas are spelled in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dsfc.api.locate import Place, spec_names
from dsfc.api.pipeline import SpecText, load, read
from dsfc.api.shipped import shipped_papers
from dsfc.expr.latex import Printer
from dsfc.mixer.ir import Mixer
from dsfc.report.formulas import definition_rows, letter_rows
from dsfc.source import Source
from dsfc.syntax import ast
from dsfc.syntax.parse import parse

LETTERED = [n for n in spec_names() if any(paper.letters for paper in shipped_papers(n))]


def _items(name: str) -> Iterator[ast.Item]:
    """The items of a spec and of those it extends."""
    (unit,) = read(name).spec.units
    yield from unit.items
    if isinstance(unit, ast.MixerUnit) and unit.base is not None:
        yield from _items(unit.base.text)


def _names(mixer: Mixer) -> set[str]:
    """All names of a mixer that its formulas may have, and `i`."""
    held = (*mixer.inputs, *mixer.params, *mixer.buffers, *mixer.abstracts)
    named = (*held, *mixer.definitions, *mixer.states)
    return {"i", *(d.axis.name for d in mixer.axes), *(item.name for item in named)}


def test_most_specs_have_letters() -> None:
    assert len(LETTERED) >= 58 and {"gla", "lstm", "s6", "dlr"} <= set(LETTERED)


@pytest.mark.share(4)
@pytest.mark.parametrize("name", LETTERED)
def test_letters_are_of_names_that_are_there_and_no_two_names_are_one(name: str) -> None:
    mixer = read(name).compilation().mixer
    functions = {item.name.text for item in _items(name) if isinstance(item, ast.FunDef)}
    for paper in mixer.papers:
        symbols = {letter.name: letter.symbol for letter in paper.letters}
        assert set(symbols) <= _names(mixer) | functions
        printer = Printer(symbols)
        shown = [printer.name(known) for known in {*_names(mixer), *symbols}]
        assert len(set(shown)) == len(shown)


def test_gla_in_the_letters_of_wang_et_al() -> None:
    """Eq. 6 and 1, h_t = A_t h_{t-1} + Δ_t b_t: A_t is diag α, b_t is k, Δ_t is v, c_t is q."""
    it = load("gla")
    rows = dict(row.split(" &= ") for row in definition_rows(it.system, it.mixer.papers[1]))
    alpha = r"\boldsymbol{\alpha}_{t}"
    read = r"\left(\sum_{N} \mathbf{q}_{t}\, \mathbf{h}_{t}\right)"
    low = r"\mathtt{W}_{2}\, \left(\mathtt{W}_{1}\, \mathbf{x}_{t}\right)"
    assert rows == {
        r"\mathbf{q}_{t}": r"\mathtt{W}_{Q}\, \mathbf{x}_{t}",
        r"\mathbf{k}_{t}": r"\mathtt{W}_{K}\, \mathbf{x}_{t}",
        r"v_{t}": r"\mathtt{W}_{V}\, \mathbf{x}_{t}",
        alpha: rf"\sigma({low} + \mathtt{{b}}_{{\alpha}})^{{\tfrac{{1}}{{16}}}}",
        r"\mathbf{h}_{t}": alpha + r"\, \mathbf{h}_{t-1} + \mathbf{k}_{t} \otimes v_{t}",
        r"\mathbf{y}_{t}": r"N^{-\tfrac{1}{2}}\, " + read,
    }
    assert letter_rows(it.mixer, it.mixer.papers[1])[:5] == [
        ("i", "t"),
        ("n", "N"),
        ("u_{i}", r"\mathbf{x}_{t}"),
        ("y_{i}", r"\mathbf{y}_{t}"),
        ("S_{i}", r"\mathbf{h}_{t}"),
    ]


def test_dlr_in_the_letters_of_gupta_et_al() -> None:
    """§2.3 with eq. 3-4: the kernel of lag k - j is the sum of W Λ^(k-j) over the N states."""
    it = load("dlr")
    assert definition_rows(it.system, it.mixer.papers[0]) == [
        r"\Lambda &= e^{(-(\log \Lambda)_{\mathrm{re}}^{2} + i\,(\log \Lambda)_{\mathrm{im}})}",
        r"y_{k} &= \sum_{j \le k} \operatorname{Re}(\sum_{N} W\, \Lambda^{k-j})\, u_{j}"
        r" + \mathtt{D}\, u_{k}",
    ]
    assert definition_rows(it.system)[1].startswith(r"y_{i} &= \sum_{j \le i} ")


def test_a_letter_with_a_superscript_takes_a_power_in_parentheses() -> None:
    text = r"""mixer m {
      paper "A", 2024, "T", letters a "a^{(h)}", W "W^\top", x "x"
      dims d
      input u : d
      param a : d
            W : d -> d
      x = W u
      y = a^2 * x
    }"""
    it = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation()
    assert definition_rows(it.system, it.mixer.papers[0]) == [
        r"x_{i} &= W^{\top}\, \mathtt{u}_{i}",
        r"\mathtt{y}_{i} &= \left(a^{(h)}\right)^{2}\, x_{i}",
    ]
