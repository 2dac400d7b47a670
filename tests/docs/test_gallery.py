"""The gallery of mixers: its spectra are those of closed forms, its pages say what is not there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dsfc.api.pipeline import load

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"


@pytest.fixture(scope="module")
def gallery() -> Iterator[SimpleNamespace]:
    """What the pages are made with; Sphinx imports it from a folder of its own."""
    sys.path.insert(0, str(EXTENSIONS))
    try:
        import errata
        import mixer_pages
        import paper_pages
        import picture
        import spectrum

        yield SimpleNamespace(
            pages=mixer_pages,
            papers=paper_pages,
            errata=errata,
            picture=picture,
            spectrum=spectrum,
        )
    finally:
        sys.path.remove(str(EXTENSIONS))


def _spectra(gallery: SimpleNamespace, name: str):
    it = load(name)
    begun = gallery.spectrum.start(it, tokens=6)
    return begun, gallery.spectrum.spectra(it, begun)


def test_a_fixed_decay_is_the_papers(gallery) -> None:
    _, (found,) = _spectra(gallery, "retnet")
    np.testing.assert_allclose(found.values, [1 - 2.0 ** -(5 + np.arange(4))])
    assert not found.paper


def test_a_delta_rule_has_one_eigenvalue_apart_from_1(gallery) -> None:
    """Λ = I - β k kᵀ with ‖k‖ = 1: eigenvalues 1, and 1 - β once per head."""
    begun, (found,) = _spectra(gallery, "deltanet")
    u, w = begun.inputs["u"], begun.params["w_beta"]
    beta = 1 / (1 + np.exp(-u @ w.T))
    heads, keys = beta.shape[1], begun.sizes["n"]
    values = np.sort(found.values.reshape(len(u), heads, keys))
    np.testing.assert_allclose(values[..., 0], 1 - beta, atol=1e-5)
    np.testing.assert_allclose(values[..., 1:], 1, atol=1e-5)


def test_a_full_matrix_has_its_own_eigenvalues(gallery) -> None:
    begun, (found,) = _spectra(gallery, "linear_rnn")
    want = np.linalg.eigvals(begun.params["A"])
    np.testing.assert_allclose(np.sort_complex(found.values[0]), np.sort_complex(want))


def test_the_papers_gauge_has_the_ratio_of_normalisers(gallery) -> None:
    begun, (lowered, paper) = _spectra(gallery, "normalized_attn")
    assert (lowered.values == 1).all() and not lowered.paper and paper.paper
    log_eta = begun.inputs["u"] @ begun.params["w_eta"].T
    np.testing.assert_allclose(paper.values, np.exp(log_eta[:-1] - log_eta[1:]))


def test_memory_is_counted_in_halves(gallery) -> None:
    assert gallery.spectrum.memory(np.array([[0.5, 0.25, 1.0]])) == (0.5, 1.0, np.inf)


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("complex_", [False, True])
def test_a_picture_draws_every_value_and_is_one_block(gallery, small: bool, complex_: bool) -> None:
    values = np.array([[-3.0, 0.1, 0.5, 0.9]]) * (1j if complex_ else 1)
    text = gallery.picture.svg(values, "four", small)
    assert text.count("M") - text.count('class="axis"') - (not complex_) == 4
    assert "\n\n" not in text and text.startswith("<svg") and text.endswith("</svg>")


def test_a_page_says_why_there_is_none(gallery) -> None:
    page = gallery.pages.page("lstm")
    assert "error[E-NONLINEAR-STATE]" in page and "--> specs/lstm.dsf:" in page
    assert "## Spectrum" not in page
    assert "takes it with `use`" in gallery.pages.page("gate")


def test_a_page_holds_what_the_compiler_says(gallery) -> None:
    page = gallery.pages.page("linear_rnn")
    assert r"\Lambda_i &= A" in page
    assert "**proved** `time_invariant`" in page and "**refuted** `stable`" in page
    assert "| `chunked` |" in page and "<svg" in page
    assert "Berant 2022: *Simplifying and" in page and "(https://arxiv.org/abs/2212.00768)" in page


def test_a_page_has_the_formulas_in_the_letters_of_papers(gallery) -> None:
    page = gallery.pages.page("linear_rnn")
    _, told, rest = page.partition("### In the letters of Gupta et al. 2022, §2.2, Prop. 1\n")
    shown, spec, _ = rest.partition("## Spec")
    assert told and spec and page.index("## Formula") < page.index(told)
    assert "| $u_{i}$ | $u_{k}$ |\n" in shown and "| $n$ | $N$ |\n" in shown
    assert r"x_{k} &= A\, x_{k-1} + B\, u_{k}" in shown
    assert "letters of Sieber et al. 2024, eq. 5-7\n" in gallery.pages.page("lstm")
    assert "In the letters of" not in gallery.pages.page("gate")


def test_every_spec_names_its_papers_alike(gallery) -> None:
    wrong, specs = gallery.papers.wrong, gallery.papers.cited()
    assert wrong(specs) == [] and sum(len(labels) for _, labels in specs.values()) > 40
    (gla, other), labels = specs["gla"]
    assert wrong({"gate": ((), ())}) == ["gate names no paper"]
    assert wrong({**specs, "x": ((replace(gla, year=2024),), ())}) == [
        "x names arXiv:2312.06635 as another spec does not"
    ]
    assert wrong({"gla": ((gla,), labels)}) == [
        "gla has a definition of Wang et al. 2025, which it does not name"
    ]
    assert wrong({"gla": ((gla, other), ("our reading", "App. 2 in 2025"))}) == []


def test_every_erratum_stands_on_its_page_and_on_those_of_its_mixers(gallery) -> None:
    errata = gallery.errata.errata()
    page = gallery.errata.page()
    assert len(errata) == 94 and page.count("\n### ") == 94
    assert all(e.said in page and e.shown in page for e in errata)
    assert "says [E-INDEX](errors.md#e-index)" in page and page.count("No test decides it. ") == 8
    own = gallery.pages.page("linear_attn").split("## Errata")[1]
    assert "[D06](../errata.md#d06)" in own and own.count("errata.md#") == 2
    assert "## Errata" not in gallery.pages.page("gate")


def test_every_spec_has_a_page(gallery) -> None:
    shipped = {f.stem for f in (EXTENSIONS.parents[1] / "specs").rglob("*.dsf")}
    assert set(gallery.pages.spec_names()) == shipped
