"""The page in a browser: modules as the command line writes them, proofs, mistakes, addresses."""

from __future__ import annotations

import pytest

from dsfc.api.locate import shipped_names
from dsfc.api.pipeline import load

SAME = """\
mixer mine "<b>mine</b>" extends qkv {
  dims r = 16
  param W_1 : d -> r ~ normal(0, 0.02)
        W_2 : r -> h × n ~ normal(0, 0.02)
        b_α : h × n = 0
  state S : h × n × p
  α = exp(-softplus(-(W_2 W_1 u + b_α)) / 16)
  S = α * S[i-1] + k ⊗ v
  y = n^(-1/2) * q · S
}
"""
"""GLA with its decay written otherwise."""


@pytest.mark.ci
def test_the_page_compiles_compares_and_shows_mistakes(opened) -> None:
    page = opened("#spec=gla")
    for name in ("gla", "lru"):
        page.visit(f"#spec={name}&show=module")
        assert page.module() == load(name).module().text.encode(), name

    page.tab.click("#tab-system")
    assert page.tab.locator("#system math").count() == 1
    page.tab.click("#tab-spectrum")
    assert page.tab.locator("#spectrum svg .dots").count() == 1

    page.write(SAME)
    word, text = page.compare("gla", conditions=False)
    assert word == "proved" and "accepted by the trusted kernel" in text

    # A reader who is sent the address sees the same.
    address = page.tab.url.partition("#")[2]
    assert address.startswith("text=")
    page.visit("#spec=gla")
    page.visit(f"#{address}")
    assert page.tab.inner_text("#system .title") == "mine: <b>mine</b>"
    assert page.tab.input_value("#other") == "gla"

    page.write(SAME.replace("state S : h × n × p", "state S : h × p").replace("b_α :", "b_β :"))
    codes = page.tab.locator("#mistakes .error .code").all_inner_texts()
    assert "E-UNKNOWN-NAME" in codes
    assert "contracts the one axis both sides share" in page.tab.inner_text("#mistakes")
    assert page.tab.locator("#editor .cm-lint-marker-error").count() >= 1
    page.tab.locator("#mistakes .go").first.click()
    assert page.tab.evaluate("document.activeElement.getAttribute('aria-label')") == "The spec"


@pytest.mark.full
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(opened, width: int) -> None:
    page = opened("#spec=normalized_attn", viewport={"width": width, "height": 800})
    for tab in ("system", "spectrum", "module", "equal"):
        page.tab.click(f"#tab-{tab}")
        assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
    page.tab.click("#open-gallery")
    assert page.tab.locator("#specs button").count() == len(shipped_names())
    page.tab.fill("#filter", "deltanet")
    assert page.tab.locator("#specs button:visible b").all_inner_texts() == [
        "deltanet",
        "gated_deltanet",
    ]
    for _ in range(2):  # the first empties the field
        page.tab.keyboard.press("Escape")
    assert not page.tab.locator("#gallery").is_visible()


@pytest.mark.full
def test_all_is_reached_by_keys(opened) -> None:
    page = opened("#spec=gla")
    page.tab.focus("#tab-system")
    for tab in ("spectrum", "module", "equal", "system"):
        page.tab.keyboard.press("ArrowRight")
        assert page.tab.locator(f"#{tab}").is_visible()
        assert page.tab.evaluate("document.activeElement.id") == f"tab-{tab}"
    # Tab leaves the editor: it is no trap.
    page.tab.focus("#editor .cm-content")
    page.tab.keyboard.press("Tab")
    assert not page.tab.evaluate("document.activeElement.closest('#editor') !== null")


@pytest.mark.full
def test_a_reader_stops_what_takes_long(opened) -> None:
    page = opened("#spec=gla")
    page.tab.reload()
    page.tab.click("#stop")  # the compiler is not loaded yet
    page.answered()
    assert page.tab.inner_text("#status").startswith("Stopped")
    page.write(SAME)
    assert page.tab.inner_text("#status").startswith("Compiled in")


@pytest.mark.full
def test_a_comparison_is_proved_under_conditions_and_can_be_stopped(opened) -> None:
    page = opened("#spec=normalized_attn")
    word, text = page.compare("s6", conditions=True)
    assert word == "proved under conditions" and "Delta[i; d] = κ[d] / eta[i; h]" in text
    page.tab.click("#compare")
    page.tab.click("#stop-compare")
    page.tab.wait_for_selector("#compare:enabled")
    assert page.tab.inner_text("#compare-status").startswith("Stopped after")
    page.write(SAME)
    assert page.compare("gla", conditions=False)[0] == "proved"


@pytest.mark.full
def test_every_shipped_spec_is_answered(opened) -> None:
    page = opened("#spec=gla")
    for name in shipped_names():
        page.visit(f"#spec={name}")
        assert page.tab.locator("#mistakes .warning").count() == 0, name
        shown = page.tab.locator("#system.stale").count() == 0
        assert not shown or page.tab.inner_text("#system .title").startswith(name)
