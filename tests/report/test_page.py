"""A report is one file that loads nothing and says why what is not there is not there."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from dsfc.analysis.point import start
from dsfc.api.locate import Place, shipped_names
from dsfc.api.pipeline import SpecText, load
from dsfc.diagnostics.report import DiagnosticError
from dsfc.report.analyses import (
    eigenvalues,
    frequency,
    frequency_together,
    influences,
    kernels,
    memories,
    memories_together,
    point,
)
from dsfc.report.facts import emitted, identity
from dsfc.report.facts import spec as spec_of
from dsfc.report.html import inline
from dsfc.report.page import comparison, report
from dsfc.report.resources import resources
from dsfc.report.sections import sections
from dsfc.report.subject import Given, Subject, core, subject
from dsfc.source import Source
from dsfc.syntax.parse import parse


class Outline(HTMLParser):
    """Tags that are open, addresses, and the text of each section."""

    EMPTY = ("meta", "br", "img", "link")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.section = ""
        self.text: dict[str, str] = {}

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.addresses += [v for k, v in attrs if k in ("href", "src", "xlink:href")]
        if tag == "section":
            self.section = values["id"]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text[self.section] = self.text.get(self.section, "") + data


def _read(page: str) -> Outline:
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    return outline


def _written(text: str, **sizes: int) -> Subject:
    """A text as a subject, of few tokens."""
    spec = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text)))
    return subject(spec.compilation(), Given(sizes, tokens=4))


@cache
def _subject(name: str, tokens: int = 6) -> Subject:
    return subject(load(name), Given({}, tokens=tokens))


def test_a_report_loads_nothing_and_has_every_section() -> None:
    page = report(_subject("gla"))
    outline = _read(page)
    assert list(outline.text)[1:] == list(sections())
    assert all(a.startswith(("#", "data:")) for a in outline.addresses)
    assert not re.search(r"<script|<link|@import|url\((?!#)", page)
    assert '<meta name="viewport"' in page and "<math" in page
    assert "proved 0 < decay(S) < 1" in re.sub(r"\s+", " ", outline.text["claims"])
    assert "# --- mode: recurrent" in outline.text["module"]


@pytest.mark.ci
def test_softmax_is_told_to_have_no_finite_state() -> None:
    text = _read(report(_subject("softmax"))).text
    assert "no finite state, so no Λ" in text["eigenvalues"]
    assert "There is no response" in text["frequency"]
    assert "no real state with a diagonal transition" in text["smoothing"]
    assert "The bound says nothing: it has no state" in text["influence"]


@pytest.mark.ci
def test_mixers_stand_side_by_side() -> None:
    subjects = [_subject("gla"), _subject("ssd")]
    page = comparison(subjects)
    text = _read(page).text
    assert all("gla" in t and "ssd" in t for s, t in text.items() if s)
    assert "influence by distance of gla, ssd" in page


@pytest.mark.ci
def test_trained_parameters_are_analysed_beside_those_of_the_start() -> None:
    it = load("retnet")
    begun = start(it.mixer, it.system, 6, {})
    trained = begun.params | {"gamma": np.full(4, 0.5)}
    found = subject(it, Given({}, trained, tokens=6, source="Weights are mine."))
    assert "Weights are mine." in point(found)
    words = eigenvalues(found)
    assert "at the start: the same at every token, |λ| from 0.9688" in words
    assert "trained: the same at every token, |λ| = 0.5; half-lives 1, 1, 1 tokens" in words


def test_text_of_a_spec_is_no_markup() -> None:
    spec = 'mixer m "<script>alert(1)</script>" {\n  input u  # <img src=x>\n  y = 2 * u\n}\n'
    found = _written(spec)
    shown = identity(found) + spec_of(found) + emitted(found)
    assert "&lt;script" in shown and "<script" not in shown and "<img" not in shown


def test_definitions_stand_in_the_letters_of_papers_too() -> None:
    shown = spec_of(_subject("mamba2_pseudo_lti"))
    assert "In the letters of" not in shown
    shown = spec_of(_subject("linear_rnn"))
    _, told, rest = shown.partition("<h3>In the letters of Gupta et al. 2022, §2.2, Prop. 1</h3>")
    assert told and rest.count("<tr>") == 9 and "<mi>N</mi>" in rest


def test_the_core_of_a_module_is_its_modes() -> None:
    text = "head\n# --- op ---\nx\n# --- mode: a ---\ny\n# --- reference ---\nz"
    assert core(text) == "# --- mode: a ---\ny\n"


@pytest.mark.share(2)
@pytest.mark.parametrize("read", ["- b * s[i-1]", "- b * s"])
def test_states_that_read_each_other_are_reported_with_one_spectrum(read: str) -> None:
    found = _written(
        f"""mixer cross {{
          dims d
          input u : d
          param a, b : d unit
          state s, t : d
          s = a * s[i-1] + b * t[i-1] + u
          t = a * t[i-1] {read}
          y = s
        }}""",
        d=2,
    )
    assert "Λ of s and t, at the start: the same at every token" in eigenvalues(found)
    assert "<svg" in frequency(found)


def test_a_mixer_with_an_abstract_map_is_refused_where_it_stands() -> None:
    with pytest.raises(DiagnosticError, match="`phi` is an abstract map") as refused:
        _subject("separable")
    (problem,) = refused.value.diagnostics
    assert problem.code == "E-REPORT" and problem.span.text == "φ"


@pytest.mark.full
@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_spec_has_a_report_or_a_diagnostic(name: str) -> None:
    try:
        it = load(name)
        page = report(subject(it, Given({}, tokens=4)))
    except DiagnosticError as e:
        assert all(d.code.startswith("E-") for d in e.diagnostics)
    else:
        assert list(_read(page).text)[1:] == list(sections())


def test_what_a_claim_proves_of_a_matrix_is_not_left_open() -> None:
    text = """mixer delta extends qkv {{
      param w : d -> h
      state S : h × n × p
      b = {scale} * sigmoid(w u)
      x = l2norm[n](k)
      S = S[i-1] - b * x ⊗ (x · S[i-1]) + b * x ⊗ v
      y = q · S
      claim stable
    }}"""
    proved, refuted = _written(text.format(scale=1)), _written(text.format(scale=3))
    assert "≤ 1: its claim <code>stable</code> is proved" in identity(proved)
    assert "norms decide" not in identity(proved) and "norm argument" not in identity(proved)
    assert "norm argument is needed" in identity(refuted)
    assert "eigenvalues do not bound" not in influences(proved)


def test_a_kernel_of_zeros_is_told_and_not_drawn() -> None:
    zero = _written(
        """mixer zero extends qkv {
          param g : h × p = 0
          state S : h × n × p
          S = 0.5 * S[i-1] + k ⊗ (g * v)
          y = q · S
        }"""
    )
    for section in (memories, kernels, frequency):
        assert "Φ is 0 at these parameters and tokens, at the start" in section(zero)
        assert "<svg" not in section(zero) and "low-pass" not in section(zero)
    assert "<svg" not in influences(zero)
    assert memories_together([zero]) == frequency_together([zero]) == ""


@pytest.mark.ci
def test_sums_over_pairs_are_not_counted_as_nothing() -> None:
    pairs = resources(
        _written(
            """mixer pairs extends qkv {
              m = 0.5
              y = sum[j ≤ i](exp(q · k[j] - m * (i - j)) * v[j])
            }"""
        )
    )
    assert "not counted: it sums over all tokens so far" in pairs
    rows = re.findall(r"<tr>.*?</tr>", pairs)
    modes = [r for r in rows if re.search(r"<t[dh][^>]*>(recurrent|parallel)<", r)]
    assert len(modes) == 2 and all(r.count("not counted") == 2 for r in modes)
    assert "not counted" not in resources(_subject("gla"))


def test_what_stands_between_backticks_is_code_and_no_markup() -> None:
    assert inline("a `b < c` d") == "a <code>b &lt; c</code> d"
    assert inline("<i>`<b>`</i> `") == "&lt;i&gt;<code>&lt;b&gt;</code>&lt;/i&gt; `"
