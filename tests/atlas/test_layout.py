"""The picture of an atlas: boxes, arrows, and what stands on what."""

from __future__ import annotations

from io import BytesIO
from itertools import combinations

import pytest

from dsfc.atlas.ir import Atlas, Found, Node, Pair
from dsfc.atlas.layout import layout


def case(a: str, b: str, statement: str = "SUB") -> Pair:
    return Pair(a, b, Found.PROVED, statement, ("c = 1",), directed=True)


def equal(a: str, b: str, *conditions: str) -> Pair:
    return Pair(a, b, Found.PROVED, "COND" if conditions else "EQ", conditions)


def atlas(names: str, *pairs: Pair) -> Atlas:
    nodes = tuple(Node(n, "", "scalar" if n < "e" else "dense") for n in names.split())
    return Atlas(nodes, pairs, ())


def test_general_mixers_are_on_the_left_and_chains_stand_for_what_they_imply() -> None:
    at = layout(atlas("a b c e", case("a", "b"), case("b", "c"), case("a", "c"), case("e", "c")))
    assert [(x.general, x.special) for x in at.arrows] == [("b", "a"), ("c", "b"), ("c", "e")]
    column = {box: place[0] for box, place in at.boxes.items()}
    assert column["c"] < column["b"] < column["a"] and column["e"] == column["b"]


def test_equal_mixers_are_one_box_where_every_two_are_proved_equal() -> None:
    whole = atlas("a b c", equal("a", "b"), equal("b", "c"), equal("a", "c"))
    assert list(layout(whole).boxes) == ["a = b = c"]
    at = layout(atlas("a b c", equal("a", "b"), equal("b", "c")))
    assert sorted(at.boxes) == ["a", "b", "c"] and len(at.arrows) == 2


def test_cases_of_one_another_are_one_arrow() -> None:
    at = layout(atlas("a b", case("a", "b"), case("b", "a")))
    (arrow,) = at.arrows
    assert arrow.both and (arrow.general, arrow.special) == ("a", "b")


def test_boxes_have_cells_of_their_own_in_the_band_of_their_class() -> None:
    at = layout(atlas("a b c d e f g h", case("a", "e"), equal("f", "b", "c == 1")))
    assert len(set(at.boxes.values())) == 8
    for kind, first, height in at.bands:
        inside = {b for b, (_, row) in at.boxes.items() if first <= row < first + height}
        assert inside == set("abcd" if kind == "scalar" else "efgh")
    assert at.related == frozenset("aefb")
    assert layout(atlas("a b c d e f g h", equal("f", "b", "c == 1"), case("a", "e"))) == at


@pytest.mark.ci
def test_a_picture_has_every_mixer_and_both_palettes() -> None:
    pytest.importorskip("matplotlib")
    from dsfc.atlas.picture import draw

    found = atlas("a b c e", case("a", "b"), equal("e", "c", "η == 1", "more"))
    drawn = {}
    for form in ("svg", "png", "pdf"):
        drawn[form] = BytesIO()
        draw(found, drawn[form], form)
    assert drawn["png"].getvalue().startswith(b"\x89PNG")
    assert drawn["pdf"].getvalue().startswith(b"%PDF")
    again = BytesIO()
    draw(found, again, "svg")
    assert again.getvalue() == drawn["svg"].getvalue()
    text = again.getvalue().decode()
    for words in ("a", "b", "c", "e", "scalar", "e = c  where η == 1 and 1 more"):
        assert f"<!-- {words} -->" in text
    assert text.count("prefers-color-scheme:dark") == 1 and "var(--c0)" in text


@pytest.mark.share(3)
@pytest.mark.parametrize("pairs", [0, 12, 40])
def test_texts_and_numbers_do_not_overlap(pairs: int) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from dsfc.atlas.picture import figure

    names = "abcdefghijklmno"
    drawn = [case(a, b) for a, b in list(combinations(names, 2))[:: 2 if pairs else 200]][:pairs]
    it = figure(atlas(" ".join(names), *drawn))
    canvas = FigureCanvasAgg(it)
    canvas.draw()
    boxes = [t.get_window_extent() for t in it.axes[0].texts]
    assert len(boxes) > len(names)
    clashes = [(a, b) for a, b in combinations(boxes, 2) if a.overlaps(b)]
    assert clashes == []
