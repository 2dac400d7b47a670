"""Layout maps as texts: each mistake is told at its line."""

from __future__ import annotations

import pytest

from dsfc.diagnostics.report import DiagnosticError
from dsfc.layouts.addresses import addressed
from dsfc.layouts.ir import Layout
from dsfc.layouts.operations import Flip, Function
from dsfc.layouts.read import load_layout, read_layout, shipped_layouts
from dsfc.source import Source

MAP = """\
title = "a pair"
spec = "pair.dsf"
unused = ["count"]

[source]
both = ["2*d"]
taps = ["d", 1, "t"]
count = [1]

[entry.a]
of = "both"
by = [{ op = "split", axis = 0, parts = ["d", "d"], keep = 0 }, { op = "exp" }]

[entry.b]
of = "both"
by = [{ op = "split", axis = 0, parts = ["d", "d"], keep = 1 }]

[entry."inner.w"]
of = "taps"
by = [
  { op = "reshape", shape = ["d", "t"] },
  { op = "flip", axis = 1 },
]
"""
SIZES = {"d": 3, "t": 2}
ENTRIES = {"a": (3,), "b": (3,), "inner.w": (3, 2)}


def layout(text: str = MAP) -> Layout:
    return read_layout(Source("map.toml", text))


def mistakes(text: str) -> list[tuple[int, str]]:
    """Lines and messages of what is wrong with a map, sizes and entries being those above."""
    with pytest.raises(DiagnosticError) as refusal:
        addressed(layout(text), SIZES, ENTRIES)
    assert {d.code for d in refusal.value.diagnostics} == {"E-LAYOUT"}
    return [(d.span.line, d.message) for d in refusal.value.diagnostics]


def changed(old: str, new: str) -> str:
    assert MAP.count(old) >= 1
    return MAP.replace(old, new, 1)


def test_a_map_is_read() -> None:
    a, b, w = layout().rows
    assert a.functions == (Function.EXP,) and b.functions == ()
    assert w.sources == ("taps",) and w.steps[1] == Flip(1)
    assert [place.line for place in w.places] == [21, 22]


def test_every_row_says_where_its_numbers_are() -> None:
    a, b, w = addressed(layout(), SIZES, ENTRIES)
    assert a.addresses.tolist() == [0, 1, 2]
    assert b.addresses.tolist() == [3, 4, 5]
    assert w.addresses.tolist() == [1, 0, 3, 2, 5, 4]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('op = "flip"', 'op = "flop"', 22, "no operation `flop`; did you mean `flip`?"),
        ("keep = 1", "kept = 1", 16, "`split` has no argument `kept`; it takes axis, parts, keep"),
        ("axis = 1", 'axis = "t"', 22, "`axis` of `flip` is a whole number, not 't'"),
        ("axis = 1", "axis = -1", 22, "`axis` of `flip` is a whole number, not -1"),
        ('{ op = "exp" }', '"exp"', 12, "an operation is a table with its name"),
        ('{ op = "exp" }', '{ op = "exp", axis = 0 }', 12, "`exp` has no argument `axis`"),
        ('of = "taps"', 'of = "tap"', 19, "no source `tap` is declared; did you mean `taps`?"),
        ('of = "taps"', 'of = ["taps", "both"]', 18, "joins them along nothing"),
        ('of = "taps"', 'of = "taps"\nalong = 0', 18, "has 1 sources, and `along` is no axis"),
        ('of = "taps"\n', "", 18, "the row of inner.w names no source"),
        ('"2*d"', '"2^d"', 6, "`2^d` is no sum of products"),
        ('"2*d"]', '"2*d"', 7, "this is no TOML"),
        ('title = "a pair"', "titel = 1", 1, "a layout map has no `titel`"),
        ("[source]", "[sources]", 5, "a layout map has no `sources`; did you mean `source`?"),
        ('spec = "pair.dsf"', "spec = 3", 2, "`spec` is missing, or no text"),
        ("count = [1]", "count = [1]\n\n[reference]\nclass = 'os.system'", 11,
         "`class` is a class as `package.module:Class`"),
        ('["d", "t"] }', '["d", "s"] }', 21, "no shape has the size s"),
        # What fits no module.
        ('  { op = "flip", axis = 1 },\n', '  { op = "blocks", count = "0" },\n', 22,
         "has no 0 blocks"),
        ('op = "flip", axis = 1', 'op = "repeat", axis = 1, times = "999999999"', 22, "more than"),
        ("[entry.b]", "[entry.c]", 14, "the module has no entry c"),
        ('"d", "d"], keep = 1', '"d"], keep = 0', 16, "the axis has 6 entries, the parts 3"),
        ('  { op = "reshape", shape = ["d", "t"] },\n', "", 18, "gives 3 × 1 × 2"),
        ('  { op = "flip", axis = 1 },\n', '  { op = "transpose", order = [1, 0] },\n', 18,
         "the row of inner.w gives 2 × 3, and the module has 3 × 2"),
        ("keep = 1", "keep = 0", 14, "3 entries of both are in a and in b"),
        ("keep = 1", "keep = 0", 6, "3 of 6 entries of both are in no row"),
        ('["count"]', "[]", 8, "1 of 1 entries of count are in no row"),
        ('["count"]', '["count", "taps"]', 7, "taps is named as unused, and a row has entries"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_at_its_line(old: str, new: str, line: int, message: str) -> None:
    told = mistakes(changed(old, new))
    assert any(at == line and message in text for at, text in told), told


def test_an_entry_without_a_row_is_missed() -> None:
    start, end = MAP.index("[entry.b]"), MAP.index('[entry."inner.w"]')
    told = mistakes(MAP[:start] + MAP[end:])
    assert (1, "no row gives b") in told


def test_all_mistakes_are_told_at_once() -> None:
    text = changed('op = "flip"', 'op = "flop"').replace('"2*d"', '"2^d"')
    assert [line for line, _ in mistakes(text)] == [6, 22]


def test_functions_stand_before_zeros() -> None:
    text = """\
title = "blocks"
spec = "it"
[source]
w = [2, 1, 1]
[entry.v]
of = "w"
by = [{ op = "block_diagonal" }, { op = "exp" }]
"""
    with pytest.raises(DiagnosticError, match="functions stand before what fills in zeros"):
        addressed(layout(text), {}, {"v": (2, 2)})


def test_several_sources_are_joined() -> None:
    text = """\
title = "joined"
spec = "it"
[source]
w = [1, 2]
v = [2, 2]
[entry.wv]
of = ["v", "w"]
along = 0
"""
    (m,) = addressed(layout(text), {}, {"wv": (3, 2)})
    assert m.addresses.tolist() == list(range(6)) and m.row.words == ("join",)


@pytest.mark.parametrize("name", shipped_layouts())
def test_a_shipped_map_is_read(name: str) -> None:
    shipped, _, is_shipped = load_layout(name)
    assert is_shipped and shipped.rows
    modules = ("transformers.",)
    assert shipped.reference is None or shipped.reference.of[0].startswith(modules)


def test_a_map_that_there_is_not() -> None:
    with pytest.raises(DiagnosticError, match=r"E-FILE.*there are: .*mamba2.*did you mean `mamba`"):
        load_layout("mumba")


@pytest.mark.parametrize("text", ["", "title = 3", "# nothing\n", 'title = "a"\nspec = "b"'])
def test_a_text_without_tables_is_told_at_its_start(text: str) -> None:
    with pytest.raises(DiagnosticError) as refusal:
        layout(text)
    assert "no published tensor is declared" in str(refusal.value)
