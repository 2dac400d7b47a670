"""Whether two definitions are one text: each is written with its names numbered as they come."""

from __future__ import annotations

from typing import Any

from second_checker.document import Document, Side


def one_definition(document: Document, a: Side, b: Side) -> bool:
    """Whether the outputs of two mixers are defined by one text, up to names of definitions."""
    theirs = frozenset((*a.inputs, *a.stored))
    texts = []
    for side in (a, b):
        writer = _Writer(document, side)
        if side is b:
            writer.other = frozenset(
                n for n in (*b.inputs, *b.stored)
                if (s := b.common.get(n, n)) in theirs
                and (a.fixed.get(s) != b.fixed.get(n) or a.shape(s) != b.shape(n))
            )  # fmt: skip
        texts.append(writer.text())
    return texts[0] == texts[1]


class _Writer:
    def __init__(self, document: Document, side: Side) -> None:
        self.document, self.side = document, side
        self.other = frozenset[str]()
        self.numbers: dict[str, int] = {}
        self.waiting: list[str] = []

    def text(self) -> list[str]:
        out = [self._name(self.side.system["outputs"][0]["name"])]
        while self.waiting:
            name = self.waiting.pop(0)
            known = [d.get(name) for d in (self.side.definitions, self.side.updates)]
            out.append(f"#{self.numbers[name]}")
            for d in known:
                out.append("none" if d is None else self._of(
                    [d["axes"], d["field"], d["backward"], d["maximum"], d["value"]]))  # fmt: skip
            if known == [None, None]:
                raise ValueError(f"{name} has no definition")
        return out

    def _of(self, value: Any) -> str:
        if isinstance(value, dict) and list(value) == ["node"]:
            return self._node(self.document.of(value)[1])
        if isinstance(value, dict) and list(value) == ["axis"]:
            name = self.document.axis(value)
            return f"{name}~{self.document.copies[name]}"
        if isinstance(value, dict) and value.get("type") == "LinearMap":
            rest = {k: v for k, v in value.items() if k != "name"}
            return self._array(value["name"]) + str([(k, self._of(v)) for k, v in rest.items()])
        if isinstance(value, dict):
            return str([(k, self._of(v)) for k, v in sorted(value.items())])
        return str([self._of(v) for v in value]) if isinstance(value, list) else repr(value)

    def _node(self, e: Any) -> str:
        parts = {k: v for k, v in e.items() if not (k == "name" and e["kind"] in ("Ref", "Param"))}
        if "over" in parts:
            parts["over"] = sorted(map(self._of, parts["over"]))
        text = str([(k, v if k == "over" else self._of(v)) for k, v in parts.items()])
        if e["kind"] in ("Ref", "Param"):
            return self._name(e["name"]) + text
        return text

    def _name(self, name: str) -> str:
        if name == "first":
            return name
        if name in self.side.inputs or name in self.side.stored:
            return self._array(name)
        if name not in self.numbers:
            self.numbers[name] = len(self.numbers)
            self.waiting.append(name)
        return f"#{self.numbers[name]}"

    def _array(self, name: str) -> str:
        if name not in self.side.inputs and name not in self.side.stored:
            raise ValueError(f"{name} is no array")
        mark = "b:" if name in self.other else "="
        return mark + self.side.common.get(name, name)
