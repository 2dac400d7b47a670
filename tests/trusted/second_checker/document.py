"""The JSON of a certificate, looked up by hand: axes by name, expressions by number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from itertools import product
from typing import Any

ARGUMENTS = {
    "Num": ("value",), "Size": ("axis",), "Ones": ("over",), "Iota": ("axis",),
    "Param": ("name", "over", "field"), "Ref": ("name", "over", "field", "when", "at"),
    "Add": ("args",), "Mul": ("args",), "Div": ("num", "den"), "Pow": ("base", "exponent"),
    "Reduce": ("how", "axis", "arg"), "Map": ("map", "arg"),
    "Fir": ("axis", "weight", "arg", "reverse"), "Rename": ("old", "new", "arg"),
    "Prim": ("name", "args", "field", "axis"), "Series": ("order", "arg"),
    "Abstract": ("name", "source", "target", "arg"),
    "Past": ("var", "relation", "body", "outer", "lag"), "Lag": ("terms", "constant"),
    "Run": ("var", "low", "high", "arg"),
}  # fmt: skip
"""Kind of a node → the names of its parts, in the order of the document."""

At = dict[str, int]
"""Axis → position."""


class Document:
    """A certificate as parsed JSON.

    Attributes:
        value: the claim with its proof.
        sizes: of every axis.
    """

    def __init__(self, text: str) -> None:
        document = json.loads(text)
        self.axes = [row[1] for row in document["axes"]]
        self.order = {row[1]: row[0] for row in document["axes"]}
        self.copies = {row[1]: row[3] or row[1] for row in document["axes"]}
        self.nodes = [_node(*row) for row in document["nodes"]]
        self.value: Any = document["value"]
        self.claim: Any = self.value["claim"]
        self.sizes = {name: size for name, size in self.claim["sizes"]}
        self._axes: dict[int, frozenset[str]] = {}
        self._complex: dict[int, bool] = {}

    def axis(self, it: Any) -> str:
        return self.axes[it["axis"]]

    def names(self, them: Any) -> tuple[str, ...]:
        """Names of axes, as they are written."""
        return tuple(self.axis(it) for it in them)

    def sorted(self, them: Any) -> tuple[str, ...]:
        """Names of axes, as arrays are stored."""
        return tuple(sorted(self.names(them), key=self.order.__getitem__))

    def places(self, axes: tuple[str, ...]) -> Iterator[At]:
        for at in product(*(range(self.sizes[a]) for a in axes)):
            yield dict(zip(axes, at, strict=True))

    def of(self, it: Any) -> tuple[int, Any]:
        """The number of an expression, and it."""
        k = it["node"]
        if type(k) is not int or k < 0:
            raise ValueError("no number of an expression")
        return k, self.nodes[k]

    def parts(self, e: Any) -> list[Any]:
        """The expressions inside one."""
        return [
            part
            for v in e.values()
            for part in (v if isinstance(v, list) else [v])
            if isinstance(part, dict) and list(part) == ["node"]
        ]

    def axes_of(self, it: Any) -> frozenset[str]:
        k, e = self.of(it)
        if k not in self._axes:
            self._axes[k] = self._find_axes(e)
        return self._axes[k]

    def _find_axes(self, e: Any) -> frozenset[str]:
        out = frozenset[str]().union(*map(self.axes_of, self.parts(e)))
        match e["kind"]:
            case "Ones" | "Param" | "Ref":
                return frozenset(self.names(e["over"]))
            case "Iota":
                return frozenset((self.axis(e["axis"]),))
            case "Reduce" | "Fir":
                return out - {self.axis(e["axis"])}
            case "Rename":
                return (out - {self.axis(e["old"])}) | {self.axis(e["new"])}
            case "Map":
                m = e["map"]
                taken = frozenset(self.names(m["source"]))
                return (out - taken) | {*self.names(m["target"]), *self.names(m["each"])}
            case "Abstract":
                return (out - {*self.names(e["source"])}) | {*self.names(e["target"])}
        return out

    def is_complex(self, it: Any) -> bool:
        k, e = self.of(it)
        if k not in self._complex:
            if "field" in e:
                self._complex[k] = e["field"] == "COMPLEX"
            else:
                own = e["kind"] == "Map" and e["map"]["field"] == "COMPLEX"
                self._complex[k] = own or any(map(self.is_complex, self.parts(e)))
        return self._complex[k]


class Side:
    """One of the two mixers.

    Attributes:
        label: "A" or "B".
        common: own name of an array → the name that generators have of it.
    """

    def __init__(self, document: Document, second: bool) -> None:
        self.document = document
        self.system: Any = document.claim["b" if second else "a"]
        self.label = "B" if second else "A"
        self.common = {n: same for n, same in document.claim["names"]} if second else {}
        self.inputs = {t["name"]: t for t in self.system["inputs"]}
        stored = [*self.system["params"], *self.system["buffers"]]
        self.stored = {_name(t): t for t in stored}
        self.streams = {s["name"]: s for s in self.system["streams"]}
        self.blocks = {b["state"]: b for s in self.system["stages"] for b in s["blocks"]}
        self.definitions = {d["name"]: d for d in self.system["definition"] if not d["update"]}
        self.updates = {d["name"]: d for d in self.system["definition"] if d["update"]}

    @cached_property
    def fixed(self) -> dict[str, str]:
        """Buffers with a value of their own → that value, as a text."""
        return {
            _name(t): self._text(t["init"]["value"])
            for t in self.system["buffers"]
            if t["init"] is not None and not t["init"]["drawn"]
        }

    def _text(self, value: Any) -> str:
        if isinstance(value, dict) and list(value) == ["node"]:
            return self._text(self.document.of(value)[1])
        if isinstance(value, dict) and list(value) == ["axis"]:
            return self.document.axis(value)
        if isinstance(value, dict):
            return str(sorted((k, self._text(v)) for k, v in value.items()))
        return str([self._text(v) for v in value]) if isinstance(value, list) else repr(value)

    def declared(self, name: str) -> Any:
        return self.stored.get(name) or self.inputs[name]

    def shape(self, name: str) -> tuple[tuple[str, ...], bool]:
        """The axes of an array as it is stored, and whether it is complex."""
        t, d = self.declared(name), self.document
        if t["type"] == "MapTensor":
            m = t["map"]
            axes = (*d.names(m["each"]), *d.names(m["target"]), *d.names(m["source"]))
            return axes, m["field"] == "COMPLEX"
        return d.names(t["axes"]), t["field"] == "COMPLEX"

    def promise(self, name: str) -> str:
        """What all entries keep; of a buffer with a value nothing is taken for granted."""
        t = self.declared(name)
        return "NONE" if t["type"] == "MapTensor" or name in self.fixed else t["constraint"]


def _node(kind: str, *parts: Any) -> Any:
    return {"kind": kind, **dict(zip(ARGUMENTS[kind], parts, strict=True))}


def _name(t: Any) -> str:
    return t["map"]["name"] if t["type"] == "MapTensor" else t["name"]
