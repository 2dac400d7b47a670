"""Makes a failing spec small: takes away items, then parts of expressions, while it still fails.

Works on the tree of `literal_text`, so that any text it reads can be made smaller, and writes the
tree back as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from literal_text import Declaration, Tree, Unit, units

_LEVELS = {"add": 0, "outer": 1, "mul": 2, "dot": 3, "neg": 4, "pow": 5}


def shrunk(text: str, fails: Callable[[str], bool], budget: int = 400) -> str:
    """Returns a smaller text that fails in the same way.

    Args:
        text: a text that fails.
        fails: whether a text fails in the same way; a text that is wrong does not.
        budget: how many texts are tried at most.
    """
    best, left = text, budget
    again = True
    while again and left > 0:
        again = False
        for smaller in candidates(best):
            if left <= 0:
                break
            if len(smaller) >= len(best):
                continue
            left -= 1
            if fails(smaller):
                best, again = smaller, True
                break
    return best


def candidates(text: str) -> Iterator[str]:
    """Yields smaller texts, the smallest steps last."""
    found = units(text)
    names = list(found)
    yield _text({n: _pruned(u) for n, u in found.items()})
    for name, unit in found.items():
        half = len(unit.items) // 2
        while half > 1:
            for k in range(0, len(unit.items), half):
                rest = [*unit.items[:k], *unit.items[k + half :]]
                yield _text({**found, name: _pruned(_with(unit, rest))})
            half //= 2
    for name in names:
        if len(names) > 1:
            yield _text({n: u for n, u in found.items() if n != name})
    for name, unit in found.items():
        for k in range(len(unit.items)):
            kept = [*unit.items[:k], *unit.items[k + 1 :]]
            used = _mentioned(kept)
            pruned = [i for i in kept if not _unused(i, used)]
            for items in (pruned, kept) if len(pruned) < len(kept) else (kept,):
                yield _text({**found, name: _with(unit, items)})
        for k, (kind, item) in enumerate(unit.items):
            for new in _smaller_items(kind, item):
                items = [*unit.items[:k], (kind, new), *unit.items[k + 1 :]]
                used = _mentioned(items)
                pruned = [i for i in items if not _unused(i, used)]
                yield _text({**found, name: _with(unit, pruned)})
        used = _axes(unit)
        for axis in unit.dims:
            if axis not in used:
                dims = {a: d for a, d in unit.dims.items() if a != axis}
                smaller = _with(unit, unit.items)
                smaller.dims = dims
                yield _text({**found, name: smaller})
        if unit.base is not None:
            smaller = _with(unit, unit.items)
            smaller.base = None
            yield _text({**found, name: smaller})


def _pruned(unit: Unit) -> Unit:
    """A unit without items and axes that nothing needs."""
    items, before = unit.items, -1
    while len(items) != before:
        before, used = len(items), _mentioned(items)
        items = [i for i in items if not _unused(i, used)]
    out = _with(unit, items)
    used = _axes(out)
    out.dims = {a: d for a, d in unit.dims.items() if a in used}
    return out


def _with(unit: Unit, items: list[tuple[str, Any]]) -> Unit:
    return Unit(unit.kind, unit.name, unit.base, unit.target, dict(unit.dims), items)


def _names(tree: Any) -> set[str]:
    if isinstance(tree, list):
        return set().union(*(_names(x) for x in tree)) if tree else set()
    if not isinstance(tree, tuple):
        return set()
    own = {tree[1]} if tree[0] in ("name", "index", "call", "apply") else set()
    return own.union(*(_names(x) for x in tree[1:]))


def _mentioned(items: list[tuple[str, Any]]) -> set[str]:
    out = {"y", "u"}
    for kind, item in items:
        if kind == "use":
            out |= {item[0], *item[1]}
        elif kind == "declare":
            out |= _names(item.value)
        else:
            own = item[0] if kind in ("define", "flow") else ""
            out |= set().union(*(_names(x) for x in item[1:])) - {own}
    return out


def _unused(item: tuple[str, Any], used: set[str]) -> bool:
    kind, what = item
    if kind == "use":
        return False
    return (what.name if kind == "declare" else what[0]) not in used


def _axes(unit: Unit) -> set[str]:
    out: set[str] = set()
    for kind, item in unit.items:
        if kind == "declare":
            out |= {*item.axes, *item.each, *(item.target or ())} | _names(item.value)
        elif kind != "use":
            out |= set().union(*(_names(x) for x in item[1:]))
    for _, size in unit.dims.values():
        out |= _names(size)
    return out


def _smaller_items(kind: str, item: Any) -> Iterator[Any]:
    match kind:
        case "declare":
            for k in range(len(item.flags)):
                flags = (*item.flags[:k], *item.flags[k + 1 :])
                yield Declaration(**{**vars(item), "flags": flags})
            if item.value is not None and item.kind != "buffer":
                yield Declaration(**{**vars(item), "value": None})
        case "use":
            for k in range(len(item[1])):
                if len(item[1]) > 1:
                    yield (item[0], [*item[1][:k], *item[1][k + 1 :]])
        case "flow":
            name, drift, rule, step = item
            for new in smaller_trees(drift):
                yield (name, new, rule, step)
            for new in smaller_trees(step):
                yield (name, drift, rule, new)
        case _:
            for new in smaller_trees(item[-1]):
                yield (*item[:-1], new)


def smaller_trees(tree: Tree) -> Iterator[Tree]:
    """Yields trees with one part taken out or put in the place of what holds it."""
    match tree:
        case ("add" | "mul", signs, parts):
            yield from parts
            if len(parts) > 2:
                for k in range(len(parts)):
                    rest = [*signs[:k], *signs[k + 1 :]]
                    rest[0] = signs[0]
                    yield (tree[0], rest, [*parts[:k], *parts[k + 1 :]])
            yield from _inside(tree, 2)
        case ("dot" | "outer", parts):
            yield from parts
            yield from _inside(tree, 1)
        case ("neg", inner):
            yield inner
            yield from (("neg", x) for x in smaller_trees(inner))
        case ("pow", base, exponent):
            yield base
            yield from (("pow", x, exponent) for x in smaller_trees(base))
        case ("apply", name, inner):
            yield inner
            yield from (("apply", name, x) for x in smaller_trees(inner) if x[0] != "num")
        case ("call", _, _, given):
            yield from given
            yield from _inside(tree, 3)
        case ("index", name, _) if name not in ("ones", "iota"):
            yield ("name", name)
        case ("num", value) if value not in (1.0, 2.0):
            yield ("num", 1.0)


def _inside(tree: Tree, place: int) -> Iterator[Tree]:
    for k, part in enumerate(tree[place]):
        for new in smaller_trees(part):
            parts = [*tree[place][:k], new, *tree[place][k + 1 :]]
            yield (*tree[:place], parts, *tree[place + 1 :])


# --- writing --------------------------------------------------------------------------------------


def _text(found: dict[str, Unit]) -> str:
    return "".join(map(_unit, found.values()))


def _unit(unit: Unit) -> str:
    head = f"{unit.kind} {unit.name}"
    head += f" on {unit.target}" if unit.target else ""
    head += f" extends {unit.base}" if unit.base else ""
    lines = []
    if unit.dims:
        dims = (("heads " if h else "") + n + (f" = {written(e)}" if e else "")
                for n, (h, e) in unit.dims.items())  # fmt: skip
        lines.append(f"dims {', '.join(dims)}")
    lines += [_item(kind, item) for kind, item in unit.items]
    return "\n".join((f"{head} {{", *(f"  {line}" for line in lines), "}", ""))


def _item(kind: str, item: Any) -> str:
    match kind:
        case "declare":
            out = f"{item.kind} {item.name}"
            if item.axes:
                out += " : " + (f"each {' × '.join(item.each)} : " if item.each else "")
                out += " × ".join(item.axes)
                out += f" -> {' × '.join(item.target)}" if item.target is not None else ""
            out += "".join(f" {f}" for f in item.flags)
            sign = "~" if item.drawn else "="
            return out + (f" {sign} {written(item.value)}" if item.value is not None else "")
        case "const":
            return f"const {item[0]} = {written(item[1])}"
        case "function":
            return f"{item[0]}({', '.join(item[1])}) = {written(item[2])}"
        case "flow":
            return f"{item[0]}' = {written(item[1])} by {item[2]}({written(item[3])})"
        case "use":
            return f"use {item[0]} on {', '.join(item[1])}"
    return f"{item[0]} = {written(item[1])}"


def written(tree: Tree, level: int = 0) -> str:
    """Returns an expression as text, with the parentheses that it needs."""
    own = _LEVELS.get(tree[0], 6)
    out = _written(tree)
    return f"({out})" if own < level else out


def _written(tree: Tree) -> str:
    match tree:
        case ("num", value):
            return f"{value:g}" if value != round(value) else str(round(value))
        case ("name", name):
            return str(name)
        case ("index", name, brackets):
            return f"{name}[{', '.join(map(_condition, brackets))}]"
        case ("call", name, brackets, given):
            within = f"[{', '.join(map(_condition, brackets))}]" if brackets else ""
            return f"{name}{within}({', '.join(map(written, given))})"
        case ("apply", name, inner):
            if inner[0] in ("name", "index", "call", "apply"):
                return f"{name} {written(inner)}"
            return f"{name}({written(inner)})"
        case ("neg", inner):
            return f"-{written(inner, 4)}"
        case ("pow", base, exponent):
            return f"{written(base, 6)}^{written(exponent, 6)}"
        case ("add" | "mul", signs, parts):
            own = _LEVELS[tree[0]]
            out = written(parts[0], own)
            for sign, part in zip(signs[1:], parts[1:], strict=True):
                out += f" {sign} {written(part, own + 1)}"
            return out
        case ("dot" | "outer", parts):
            sign = " · " if tree[0] == "dot" else " ⊗ "
            return sign.join(written(p, _LEVELS[tree[0]] + 1) for p in parts)
    raise ValueError(tree[0])


def _condition(tree: Tree) -> str:
    if tree[0] != "compare":
        return written(tree)
    _, operators, parts = tree
    out = written(parts[0])
    for sign, part in zip(operators, parts[1:], strict=True):
        out += f" {sign} {written(part)}"
    return out
