from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.language_server import pieces as reading
from dsfc.language_server.pieces import pieces
from dsfc.limits import DEFAULT_LIMITS
from dsfc.source import Source
from dsfc.syntax.parse import parse

ROOT = Path(__file__).parents[2]

SPECS = sorted((ROOT / "specs").glob("*.dsf"))


def units(text: str) -> list:
    source = Source("<text>", text)
    return [unit for piece in pieces(source, DEFAULT_LIMITS) for unit in piece.spec.units]


@pytest.mark.ci
def test_the_pieces_of_a_text_without_mistakes_are_its_tree() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in SPECS)
    source = Source("<text>", text)
    whole = parse(source)
    read = [(p, unit) for p in pieces(source, DEFAULT_LIMITS) for unit in p.spec.units]
    assert [unit for _, unit in read] == list(whole.units)
    for (piece, unit), known in zip(read, whole.units, strict=True):
        for own, there in ((unit.name, known.name), *zip(unit.items, known.items, strict=True)):
            assert piece.place(source, own.span) == there.span


@pytest.mark.share(2)
@pytest.mark.parametrize("path", SPECS[::6], ids=lambda it: it.stem)
def test_a_line_with_a_mistake_takes_at_most_one_item_more(path: Path) -> None:
    """Each line of a body in turn loses its second half and gets a bracket."""
    text = path.read_text(encoding="utf-8")
    (whole,) = units(text)
    lines = text.split("\n")
    head = next(k for k, line in enumerate(lines) if "{" in line and not line.startswith("#"))
    for number in range(head + 1, len(lines)):
        line = lines[number]
        if len(line) < 4:
            continue
        broken = [*lines[:number], f"{line[: len(line) // 2]} ) (", *lines[number + 1 :]]
        (left,) = units("\n".join(broken))
        assert left.name == whole.name
        kept = [item for item in whole.items if item in left.items]
        on_line = [i for i in whole.items if i.span.line <= number + 1 <= _last_line(i)]
        assert len(kept) >= len(whole.items) - max(len(on_line), 1) - 1


def _last_line(item) -> int:
    return item.span.source.position(item.span.end)[0]


def test_a_change_reads_its_own_piece_again_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def counted(source: Source, *rest: object) -> object:
        parsed.append(source.text)
        return parse(source, *rest)

    monkeypatch.setattr(reading, "parse", counted)
    text = "".join(f"mixer read_once_{k} extends qkv {{\n  y = q * {k}\n}}\n" for k in range(20))
    assert len(units(text)) == len(parsed) == 20
    parsed.clear()
    changed = text.replace("q * 7", "q * 7 *")
    assert len(units(f"# a line above\n{changed}")) == 20
    assert 0 < len(parsed) <= 4 and all("read_once_7" in piece for piece in parsed)


@pytest.mark.parametrize("text", ["", "\n", "y = q", "mixer", "mixer {", "{}", "# mixer m {"])
def test_what_has_no_header_has_no_units(text: str) -> None:
    assert units(text) == []


@pytest.mark.parametrize(
    "text",
    ["mixer m", "mixer m {", "mixer m extends", 'mixer m "', "mixer m }{", "mixer m extends qkv"],
)
def test_a_header_alone_is_a_unit_with_its_name(text: str) -> None:
    (unit,) = units(text)
    assert unit.name.text == "m" and unit.items == ()


def test_of_a_text_beyond_the_limits_nothing_is_read() -> None:
    assert units("mixer m {\n}\n" * 10_000) == []
