"""Reads layout maps; each mistake is E-LAYOUT at its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dsfc import files
from dsfc.diagnostics.catalogue import LayoutProblem
from dsfc.diagnostics.file_error import file_error
from dsfc.diagnostics.report import DiagnosticError, Reporter, nearest
from dsfc.layouts.dims import Dim, parse_dim
from dsfc.layouts.ir import Layout, Published, Reference, Row, Setting, Step
from dsfc.layouts.operations import OPERATIONS, Function, Kind
from dsfc.layouts.places import Places
from dsfc.source import Source, Span

SUFFIX = ".toml"

_MOST = 1 << 20
"""Bytes that a map may have."""

_DOTTED = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")
_KEYS = ("title", "spec", "layer", "source", "unused", "entry", "axes", "reference")
_ROW = ("of", "along", "by")
_REFERENCE = ("class", "config", "sizes", "settings", "arguments", "call", "positions")

Table = Mapping[str, Any]


def shipped_layouts() -> tuple[str, ...]:
    """Returns the names of the maps that come with dsfc, sorted."""
    names = (Path(file.name) for file in resources.files("dsfc.layouts").iterdir())
    return tuple(sorted(name.stem for name in names if name.suffix == SUFFIX))


def load_layout(word: str) -> tuple[Layout, Path, bool]:
    """Returns a map, the file that it was read from, and whether that is a shipped one.

    Args:
        word: a file, or the name of a shipped map; a file of that very name comes first.

    Raises:
        DiagnosticError: E-FILE, E-LAYOUT.
    """
    file, shipped = Path(word), False
    if not file.is_file() and word in shipped_layouts():
        file, shipped = Path(str(resources.files("dsfc.layouts") / f"{word}{SUFFIX}")), True
    try:
        content = files.read(file, _MOST)
    except FileNotFoundError:
        known = ", ".join(shipped_layouts())
        problem = f"no such file, and no shipped layout of that name; there are: {known}"
        raise file_error(word, problem, nearest(word, shipped_layouts())) from None
    except (OSError, ValueError) as e:
        raise file_error(word, e if isinstance(e, OSError) else str(e)) from None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise file_error(word, "is not a text in UTF-8") from None
    return read_layout(Source(word, text)), file, shipped


def read_layout(source: Source) -> Layout:
    """Returns the map that a text writes.

    Raises:
        DiagnosticError: E-LAYOUT, every mistake of the text at its line.
    """
    places = Places(source)
    try:
        table = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as e:
        raise DiagnosticError(
            (LayoutProblem(places.of_message(str(e)), problem=f"this is no TOML: {e}"),)
        ) from None
    except RecursionError:
        raise DiagnosticError(
            (LayoutProblem(source.span(0, 0), problem="it is nested too deeply"),)
        ) from None
    reader = _Reader(places)
    layout = reader.layout(table)
    reader.reporter.raise_errors()
    return layout


class _Reader:
    """Takes tables apart; what is wrong is noted, and reading goes on with something harmless."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.reporter = Reporter()
        self.sizes: tuple[str, ...] = ()

    def wrong(
        self, at: Span, problem: str, hint: str | None = None, near: str | None = None
    ) -> None:
        self.reporter.add(LayoutProblem(at, problem=problem, hint=hint, nearest=near))

    def layout(self, table: Table) -> Layout:
        top = self.places.top
        self._known(table, _KEYS, "a layout map", top, ())
        published = tuple(
            Published(name, self._dims(shape, self.places.key(("source",), name)),
                      self.places.key(("source",), name))
            for name, shape in self._table(table, "source", ()).items()
        )  # fmt: skip
        names = tuple(p.name for p in published)
        if not names:
            self.wrong(
                top, "no published tensor is declared", 'write `[source]` and `name = ["d"]`'
            )
        self.sizes = tuple(n for p in published for dim in p.shape for n in dim.names)
        unused = self._texts(table.get("unused", []), self.places.key((), "unused"))
        self._demand_names(unused, names, self.places.key((), "unused"))
        entries = self._table(table, "entry", ())
        rows = tuple(self._row(entry, entries, names) for entry in entries)
        axes = {
            name: self._dim(dim, self.places.key(("axes",), name))
            for name, dim in self._table(table, "axes", ()).items()
        }
        reference = self._table(table, "reference", ())
        layer = table.get("layer", False)
        if not isinstance(layer, bool):
            self.wrong(self.places.key((), "layer"), "`layer` is true or false")
        return Layout(
            self._text(table, "title", ()),
            self._text(table, "spec", ()),
            layer is True,
            published,
            unused,
            rows,
            MappingProxyType(axes),
            self._reference(reference) if reference else None,
            top,
        )

    def _row(self, entry: str, entries: Table, names: tuple[str, ...]) -> Row:
        path = ("entry", entry)
        at = self.places.table(path)
        table = self._table(entries, entry, ("entry",))
        self._known(table, _ROW, f"the row of {entry}", at, path)
        of = table.get("of", [])
        sources = self._texts([of] if isinstance(of, str) else of, self.places.key(path, "of"))
        self._demand_names(sources, names, self.places.key(path, "of"))
        along = table.get("along")
        if not sources:
            self.wrong(at, f"the row of {entry} names no source", 'write `of = "name"`')
        if (len(sources) > 1) != (along is not None) or not _is_whole(along, optional=True):
            self.wrong(
                at,
                f"the row of {entry} has {len(sources)} sources"
                + (
                    " and joins them along nothing" if along is None else ", and `along` is no axis"
                ),
                "several sources are joined along an axis: `along = 0`; one source is not",
            )
            along = None
        by = table.get("by", [])
        if not isinstance(by, list):
            self.wrong(
                self.places.key(path, "by"), '`by` is a list of operations: `[{ op = "exp" }]`'
            )
            by = []
        spots = tuple(self.places.step(path, number) for number in range(len(by)))
        steps = []
        for step, spot in zip(by, spots, strict=True):
            done = self._step(step, spot)
            if done is not None:
                steps.append(done)
        return Row(entry, sources, along, tuple(steps), at, spots)

    def _step(self, table: object, at: Span) -> Step | None:
        words = (*OPERATIONS, *Function)
        if not isinstance(table, dict) or not isinstance(table.get("op"), str):
            self.wrong(at, 'an operation is a table with its name: `{ op = "flip", axis = 1 }`')
            return None
        word = table["op"]
        rest = {key: value for key, value in table.items() if key != "op"}
        if word in tuple(Function):
            self._arguments(word, rest, (), at)
            return Function(word)
        operation = OPERATIONS.get(word)
        if operation is None:
            self.wrong(
                at, f"no operation `{word}`", f"there are: {', '.join(words)}", nearest(word, words)
            )
            return None
        if not self._arguments(word, rest, operation.arguments, at):
            return None
        values = [self._argument(word, name, rest[name], kind, at)
                  for name, kind in operation.arguments.items()]  # fmt: skip
        return None if None in values else operation(*values)

    def _arguments(self, word: str, rest: Table, known: Iterable[str], at: Span) -> bool:
        known = tuple(known)
        takes = f"it takes {', '.join(known)}" if known else "it takes nothing"
        for name in rest:
            if name not in known:
                self.wrong(at, f"`{word}` has no argument `{name}`; {takes}",
                           near=nearest(name, known))  # fmt: skip
        missing = [name for name in known if name not in rest]
        if missing:
            self.wrong(at, f"`{word}` lacks `{missing[0]}`; {takes}")
        return not missing

    def _argument(self, word: str, name: str, value: object, kind: Kind, at: Span) -> Any:  # noqa: ANN401 - by its kind
        match kind:
            case Kind.NUMBER if _is_whole(value):
                return value
            case Kind.NUMBERS if isinstance(value, list) and all(map(_is_whole, value)):
                return tuple(value)
            case Kind.SIZE if isinstance(value, str) or _is_whole(value):
                return self._declared((self._dim(value, at),), at)[0]
            case Kind.SIZES if isinstance(value, list):
                return self._declared(self._dims(value, at), at)
        self.wrong(at, f"`{name}` of `{word}` is {kind.value}, not {value!r}")
        return None

    def _reference(self, table: Table) -> Reference | None:
        path = ("reference",)
        self._known(table, _REFERENCE, "the reference", self.places.table(path), path)
        of = self._class(table, "class")
        config = self._class(table, "config") if "config" in table else None
        positions = table.get("positions")
        if positions is not None and not isinstance(positions, str):
            self.wrong(self.places.key(path, "positions"), "`positions` names an argument")
        sizes = {
            name: self._dim(dim, self.places.key((*path, "sizes"), name))
            for name, dim in self._table(table, "sizes", path).items()
        }
        settings, arguments, call = (
            self._settings(table, name) for name in ("settings", "arguments", "call")
        )
        if of is None:
            return None
        return Reference(
            of,
            config,
            MappingProxyType(sizes),
            settings,
            arguments,
            call,
            positions if isinstance(positions, str) else None,
            self.places.key(path, "class"),
        )

    def _class(self, table: Table, key: str) -> tuple[str, str] | None:
        value = table.get(key)
        match = _DOTTED.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            at = self.places.key(("reference",), key)
            self.wrong(at, f"`{key}` is a class as `package.module:Class`")
            return None
        return match[1], match[2]

    def _settings(self, table: Table, key: str) -> Mapping[str, Setting]:
        path = ("reference",)
        settings = self._table(table, key, path)
        for name, value in settings.items():
            if not isinstance(value, bool | int | float | str):
                at = self.places.key((*path, key), name)
                self.wrong(at, f"`{name}` is a number, a word, true or false")
        return MappingProxyType(dict(settings))

    # --- pieces ----------------------------------------------------------------------------------

    def _known(
        self, table: Table, known: tuple[str, ...], what: str, at: Span, path: tuple[str, ...]
    ) -> None:
        for key in table:
            if key not in known:
                place = self.places.key(path, key)
                hint = f"there are: {', '.join(known)}"
                self.wrong(place, f"{what} has no `{key}`", hint, nearest(key, known))

    def _table(self, table: Table, key: str, path: tuple[str, ...]) -> Table:
        value = table.get(key, {})
        if isinstance(value, dict):
            return value
        self.wrong(self.places.key(path, key), f"`{key}` is a table")
        return {}

    def _text(self, table: Table, key: str, path: tuple[str, ...]) -> str:
        value = table.get(key)
        if isinstance(value, str) and value:
            return value
        self.wrong(self.places.key(path, key), f"`{key}` is missing, or no text")
        return key

    def _texts(self, value: object, at: Span) -> tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(text, str) for text in value):
            return tuple(value)
        self.wrong(at, "names of published tensors are texts in a list")
        return ()

    def _demand_names(self, words: tuple[str, ...], names: tuple[str, ...], at: Span) -> None:
        for word in words:
            if word not in names:
                hint = "the tensors of the published layer stand in `[source]` with their shapes"
                self.wrong(at, f"no source `{word}` is declared", hint, nearest(word, names))

    def _declared(self, dims: tuple[Dim, ...], at: Span) -> tuple[Dim, ...]:
        """The sizes of an operation, whose names are those of the shapes of sources."""
        for name in dict.fromkeys(n for dim in dims for n in dim.names):
            if name not in self.sizes:
                hint = "sizes are the names in the shapes of `[source]`"
                self.wrong(at, f"no shape has the size {name}", hint, nearest(name, self.sizes))
        return dims

    def _dims(self, value: object, at: Span) -> tuple[Dim, ...]:
        if isinstance(value, list):
            return tuple(self._dim(item, at) for item in value)
        self.wrong(at, 'a shape is a list of sizes, such as `["2*e", "d"]`')
        return ()

    def _dim(self, value: object, at: Span) -> Dim:
        if _is_whole(value):
            return Dim(((int(str(value)), ()),))
        try:
            return parse_dim(value if isinstance(value, str) else repr(value))
        except ValueError as e:
            self.wrong(at, str(e), "a size is a sum such as `2*h*p + n`")
            return Dim(((1, ()),))


def _is_whole(value: object, optional: bool = False) -> bool:
    if value is None:
        return optional
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31
