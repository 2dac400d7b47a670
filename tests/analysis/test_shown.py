"""Notebooks show values with pictures, and text where no library draws."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dsfc.analysis.kernel import NoKernel
from dsfc.analysis.shown import MISSING
from dsfc.api.pipeline import load

SIZES = {"d": 8, "h": 2}


def test_a_loaded_mixer_has_its_analyses_as_values() -> None:
    attn = load("normalized_attn")
    shown = attn.spectrum(SIZES, 6)
    assert [s.paper for s in shown.spectra] == [False, True] and shown.ratios is None
    assert attn.kernel(SIZES, 6).values.shape == (6, 6, 8, 8)
    assert attn.influence(SIZES, 6).values.shape == (6, 6)
    assert load("softmax").spectrum(SIZES, 6).ratios.shape == (5, 2, 1)


def test_parameters_and_tokens_may_be_given() -> None:
    rnn = load("linear_rnn")
    tokens = np.ones((3, 2))
    given = {"A": np.diag([0.5, 0.25])}
    shown = rnn.spectrum({"d": 2, "n": 2}, params=given, inputs={"u": tokens})
    assert sorted(shown.spectra[0].values.ravel().real) == [0.25, 0.5]
    assert shown.point.tokens == 3


@pytest.mark.ci
def test_pictures_are_inline() -> None:
    pytest.importorskip("matplotlib")
    gla = load("gla")
    for shown in (gla.spectrum(SIZES, 4), gla.kernel(SIZES, 4), gla.influence(SIZES, 4)):
        html = shown._repr_html_()
        assert "<svg" in html and html.count("<figure") == html.count("</figure>") >= 1


def test_without_a_library_for_pictures_a_notebook_says_so(monkeypatch) -> None:
    for name in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("dsfc.analysis.pictures", "dsfc.charts.charts"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import dsfc.analysis

    monkeypatch.delattr(dsfc.analysis, "pictures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    html = load("gla").spectrum(SIZES, 4)._repr_html_()
    assert "<svg" not in html and MISSING.replace("'", "&#x27;") in html


def test_a_mixer_without_a_kernel_says_why() -> None:
    with pytest.raises(NoKernel, match="complex"):
        load("hgrn").kernel(tokens=3)


def test_stages_show_themselves() -> None:
    gla = load("gla")
    assert gla.structure._repr_html_().startswith("<pre>structure of gla")
    assert "scan       S_read" in gla.plan._repr_html_()
    assert r"\Lambda_i &= I_{p} \otimes" in gla.matrices()._repr_markdown_()
    small = gla.matrices(sizes={"d": 2, "h": 1, "n": 2, "p": 1})._repr_markdown_()
    assert r"\Lambda_1 = \left[\begin{matrix}" in small and "d = 2, h = 1, n = 2, p = 1" in small
    assert "64 × 64" in gla.matrices(sizes={"d": 8, "h": 4, "n": 4, "p": 4})._repr_markdown_()
    assert "no Λ, B, C, D" in load("softmax").matrices(sizes={"d": 2})._repr_markdown_()
