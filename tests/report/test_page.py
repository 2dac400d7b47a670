"""A report is one file that loads nothing and says why what is not there is not there."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from dsfc.analysis.point import start
from dsfc.api.pipeline import load
from dsfc.report.analyses import eigenvalues, point
from dsfc.report.facts import emitted, identity
from dsfc.report.facts import spec as spec_of
from dsfc.report.page import comparison, report
from dsfc.report.sections import sections
from dsfc.report.subject import Given, Subject, core, subject


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
    from pathlib import Path

    from dsfc.api.locate import Place
    from dsfc.api.pipeline import SpecText
    from dsfc.source import Source
    from dsfc.syntax.parse import parse

    spec = 'mixer m "<script>alert(1)</script>" {\n  input u  # <img src=x>\n  y = 2 * u\n}\n'
    text = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", spec)))
    found = subject(text.compilation(), Given({}, tokens=3))
    shown = identity(found) + spec_of(found) + emitted(found)
    assert "&lt;script" in shown and "<script" not in shown and "<img" not in shown


def test_the_core_of_a_module_is_its_modes() -> None:
    text = "head\n# --- op ---\nx\n# --- mode: a ---\ny\n# --- reference ---\nz"
    assert core(text) == "# --- mode: a ---\ny\n"
