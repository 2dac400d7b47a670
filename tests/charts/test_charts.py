"""Charts are parts of a page: well formed, in its colours, with identifiers of their own."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from dsfc.charts.charts import Line, bars, lines, map_of, plane, points, strip


def _drawn() -> tuple[str, ...]:
    """A chart of each kind, drawn again."""
    x = np.arange(1.0, 9)
    return (
        lines([Line(x, 10.0**-x, "a"), Line(x, x, "b", True)], "x", "y", "lines", (False, True)),
        plane(np.exp(1j * x), "plane"),
        points({"a": (x, x), "b": (x, -x)}, "x", "y", "points"),
        strip({"a": x, "b": -x}, "y", "strip"),
        bars({"a": np.array([0.5, 0.5])}, (0, 1, np.inf), "x", "bars"),
        map_of(np.tri(4), "x", "y", "map"),
    )


@pytest.fixture(scope="module")
def drawn() -> tuple[str, ...]:
    """A chart of each kind."""
    return _drawn()


@pytest.mark.ci
def test_charts_are_well_formed_and_load_nothing(drawn) -> None:
    for svg in drawn:
        root = ET.fromstring(svg)
        assert root.tag.endswith("svg") and root.get("role") == "img"
        addresses = re.findall(r'(?:href|src)="([^"]*)"', svg)
        assert all(a.startswith(("#", "data:")) for a in addresses)
        assert "currentColor" in svg and "#123456" not in svg


@pytest.mark.ci
def test_charts_of_a_page_share_no_identifier(drawn) -> None:
    names = [re.findall(r'\bid="([^"]+)"', svg) for svg in drawn]
    everything = [name for of in names for name in of]
    assert len(everything) == len(set(everything))
    for svg, own in zip(drawn, names, strict=True):
        used = re.findall(r'(?:href="|url\()#([\w-]+)', svg)
        assert set(used) <= set(own)


@pytest.mark.ci
def test_equal_values_give_equal_charts(drawn) -> None:
    assert drawn == _drawn()


def test_a_label_is_text() -> None:
    svg = plane(np.ones(1), '<script> & "λ"')
    assert ET.fromstring(svg).get("aria-label") == '<script> & "λ"'


@pytest.mark.ci
def test_values_without_a_spread_have_a_linear_axis() -> None:
    x = np.arange(3.0)
    flat = lines([Line(x, 1 + x / 10)], "x", "y", "flat", (False, True))
    steep = lines([Line(x, 10.0**x)], "x", "y", "steep", (False, True))
    assert "10" in steep and "1.05" in flat


def test_a_map_of_zeros_is_blank() -> None:
    assert "<image" in map_of(np.zeros((2, 2)), "x", "y", "zeros")


def test_a_map_of_zeros_has_no_scale_of_colours() -> None:
    ticks = re.compile(r'id="[^"]*axes_2')
    assert not ticks.search(map_of(np.zeros((2, 2)), "x", "y", "zeros"))
    assert ticks.search(map_of(np.ones((2, 2)), "x", "y", "ones"))


def test_names_of_bars_and_points_stand_above_the_frame() -> None:
    full = np.ones(4)
    drawn_ = (
        bars({"a": full, "b": full}, (0, 1, 2, 3, 4), "x", "bars"),
        points({"a": (full, full), "b": (full, 2 * full)}, "x", "y", "points"),
    )
    for svg in drawn_:
        heights = {
            text: float(y)
            for x in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
            if (text := "".join(x.itertext()).strip()) and (y := x.get("y"))
        }
        names = [heights.pop("a"), heights.pop("b")]
        assert max(names) < min(heights.values())
