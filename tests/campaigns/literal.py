"""Runs a spec as a literal loop over its text, in torch; the judge of the random modules.

Nothing of dsfc is used or copied: the text is read by `literal_text`, a name at a token is what
its definition says there, a sum over the past is a loop over tokens, a flow is discretised from the
drift as written. Gradients are autograd's through these loops. Slow on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from literal_text import Declaration, Tree, Unit, units
from torch import Tensor

Library = Callable[[str], str | None]


@dataclass(frozen=True)
class Value:
    """A tensor with named axes: `[B or 1, *axes]`, axes in the order of `dims`."""

    axes: tuple[str, ...]
    data: Tensor


@dataclass
class Program:
    """A mixer with its bases and modifiers laid together, every name in one table."""

    dims: dict[str, tuple[bool, Tree | None]] = field(default_factory=dict)
    declared: dict[str, Declaration] = field(default_factory=dict)
    constants: dict[str, Tree] = field(default_factory=dict)
    functions: dict[str, tuple[list[str], Tree]] = field(default_factory=dict)
    definitions: dict[str, Tree] = field(default_factory=dict)
    flows: dict[str, tuple[Tree, str, Tree]] = field(default_factory=dict)
    uses: list[tuple[str, list[str]]] = field(default_factory=list)
    shifted: dict[str, str] = field(default_factory=dict)
    """Input → the name that everything but its own modifier reads in its place."""

    def named(self, kind: str) -> dict[str, Declaration]:
        """Returns the declarations of a kind by name."""
        return {n: d for n, d in self.declared.items() if d.kind == kind}


def program(text: str, mixer: str, library: Library = lambda name: None) -> Program:
    """Returns a mixer of a text, laid over its bases, with its modifiers applied.

    Args:
        text: the text of a spec.
        mixer: the name of the mixer.
        library: the text of the spec that has a name, for bases and modifiers of other files.
    """
    here = units(text)

    def found(name: str) -> Unit:
        if name not in here:
            other = library(name)
            if other is None:
                raise NameError(name)
            for key, unit in units(other).items():
                here.setdefault(key, unit)
        return here[name]

    chain = [found(mixer)]
    while chain[-1].base is not None:
        chain.append(found(str(chain[-1].base)))
    out = Program()
    for unit in reversed(chain):
        _lay(unit, out)
    for name, targets in out.uses:
        for target in targets:
            _modify(out, found(name), target)
    _rename_shifted(out)
    return out


def _forget(out: Program, name: str, keep_state: bool) -> None:
    if not (keep_state and name in out.declared and out.declared[name].kind == "state"):
        out.declared.pop(name, None)
    for table in (out.constants, out.functions, out.definitions, out.flows):
        table.pop(name, None)


def _lay(unit: Unit, out: Program) -> None:
    out.dims.update(unit.dims)
    for kind, item in unit.items:
        match kind:
            case "declare":
                update = out.definitions.get(item.name), out.flows.get(item.name)
                _forget(out, item.name, False)
                out.declared[item.name] = item
                if item.kind == "state":
                    if update[0] is not None:
                        out.definitions[item.name] = update[0]
                    if update[1] is not None:
                        out.flows[item.name] = update[1]
            case "use":
                out.uses.append(item)
            case _:
                _forget(out, item[0], kind in ("define", "flow"))
                _define(out, kind, item)


def _define(out: Program, kind: str, item: tuple[Any, ...]) -> None:
    match kind:
        case "const":
            out.constants[item[0]] = item[1]
        case "function":
            out.functions[item[0]] = item[1:]
        case "define":
            out.definitions[item[0]] = item[1]
        case "flow":
            out.flows[item[0]] = item[1:]


def _modify(out: Program, modifier: Unit, target: str) -> None:
    """Puts a modifier's body in the place of a definition, or behind an input."""
    word, stem = modifier.target, f"{target}_{modifier.name}_"
    if target in out.definitions:
        before, after = f"{target}_before_{modifier.name}", target
        while before in out.definitions:
            before += "_"
        out.definitions[before] = out.definitions.pop(target)
    else:
        before = out.shifted.get(target, f"{target} raw")
        after = f"{target}_{modifier.name}"
        while after in out.definitions:
            after += "_"
        out.shifted[target] = after
    brought = {
        (item.name if kind == "declare" else item[0])
        for kind, item in modifier.items
        if kind != "use"
    } - {word}
    number = 1
    while any(stem + name in {*out.declared, *out.definitions, *out.constants} for name in brought):
        number += 1
        stem = f"{target}_{modifier.name}{number}_"
    names = {name: stem + name for name in brought} | {word: before, target: before}
    for name, dim in modifier.dims.items():
        out.dims.setdefault(name, dim)
    for kind, item in modifier.items:
        if kind == "declare":
            value = None if item.value is None else renamed(item.value, names)
            axes, targets = item.axes, item.target
            made = Declaration(item.kind, stem + item.name, axes, item.each, targets, item.flags,
                               value, item.drawn)  # fmt: skip
            made.__dict__["alias"] = (word, before)
            out.declared[made.name] = made
        else:
            bound = set(item[1]) if kind == "function" else set()
            inner = {n: to for n, to in names.items() if n not in bound}
            parts = [renamed(x, inner) if isinstance(x, tuple) else x for x in item[1:]]
            name = after if item[0] == word else stem + item[0]
            _define(out, kind, (name, *parts))


def renamed(tree: Any, names: Mapping[str, str]) -> Any:
    """Returns a tree with names replaced."""
    if isinstance(tree, list):
        return [renamed(x, names) for x in tree]
    if not isinstance(tree, tuple):
        return tree
    if tree[0] in ("name", "index", "call", "apply"):
        name = names.get(tree[1], tree[1])
        return (tree[0], name, *(renamed(x, names) for x in tree[2:]))
    return (tree[0], *(renamed(x, names) for x in tree[1:]))


def _rename_shifted(out: Program) -> None:
    """Everything reads the modified input; its first modifier reads the raw one."""
    raw = {f"{name} raw": name for name in out.shifted}

    def moved(tree: Any) -> Any:
        return renamed(renamed(tree, out.shifted), raw) if isinstance(tree, tuple) else tree

    out.definitions = {n: moved(t) for n, t in out.definitions.items()}
    out.flows = {n: (moved(d), rule, moved(s)) for n, (d, rule, s) in out.flows.items()}


@dataclass(frozen=True)
class Place:
    """Where an expression stands: the tokens its indices mean, and a function's arguments."""

    tokens: Mapping[str, int]
    arguments: Mapping[str, tuple[Tree, Place]] = field(default_factory=dict)


LOWEST = -(2.0**100)
"""Where a running maximum starts: a state whose update is a maximum of its past and a value."""


class Literal:
    """One mixer, run over one batch of sequences of equal length.

    Args:
        mixer: what to run.
        sizes: size of every axis by name.
        values: inputs `[B, L, *axes]`, parameters and buffers `[*axes]`, maps
            `[*each, *target, *source]`; all axes in the order of `dims`.
        initial: states `[B, *axes]` before the first token (after the last, if backward).
        length: L.
    """

    def __init__(
        self,
        mixer: Program,
        sizes: Mapping[str, int],
        values: Mapping[str, Tensor],
        initial: Mapping[str, Tensor],
        length: int,
    ) -> None:
        self.mixer = mixer
        self.sizes = sizes
        self.order = {name: k for k, name in enumerate(mixer.dims)}
        self.values = values
        self.initial = initial
        self.length = length
        self.known: dict[tuple[str, int], Value] = {}
        self.shapes: dict[str, Value] = {}
        self.sketch = False
        self.held: dict[str, Value] = {}
        real = next(v.dtype for v in values.values()) if values else torch.float64
        self.dtype = real.to_real() if real.is_complex else real

    def output(self) -> Tensor:
        """Returns y, `[B, L, *axes]`."""
        return self.stacked("y")

    def stacked(self, name: str) -> Tensor:
        """Returns a stream, `[B, L, *axes]`."""
        axes = self.shape(name).axes
        return torch.stack(
            torch.broadcast_tensors(
                *(self.expanded(self.at(name, k), axes).data for k in range(self.length))
            ),
            1,
        )

    def final(self, name: str) -> Tensor:
        """Returns a state after the last token it sees, `[B, *axes]`."""
        backward = "backward" in self.mixer.declared[name].flags
        return self.at(name, 0 if backward else self.length - 1).data

    # --- axes -------------------------------------------------------------------------------------

    def sorted_axes(self, axes: Any) -> tuple[str, ...]:
        return tuple(sorted(set(axes), key=self.order.__getitem__))

    def aligned(self, v: Value, axes: tuple[str, ...]) -> Tensor:
        """Puts axes of size 1 where a value lacks them."""
        data, have = v.data, set(v.axes)
        for place, axis in enumerate(axes, 1):
            if axis not in have:
                data = data.unsqueeze(place)
        return data

    def expanded(self, v: Value, axes: tuple[str, ...]) -> Value:
        data = self.aligned(v, axes)
        return Value(axes, data.expand(data.shape[0], *(self.sizes[a] for a in axes)))

    def joined(self, how: Callable[..., Tensor], *values: Value) -> Value:
        axes = self.sorted_axes(a for v in values for a in v.axes)
        return Value(axes, how(*(self.aligned(v, axes) for v in values)))

    def number(self, x: float) -> Value:
        return Value((), torch.full((1,), float(x), dtype=self.dtype))

    def declared_axes(self, d: Declaration, axes: tuple[str, ...]) -> tuple[str, ...]:
        word, meant = d.__dict__.get("alias", ("", ""))
        out: list[str] = []
        for a in axes:
            out.extend(self.shape(meant.removesuffix(" raw")).axes if a == word else (a,))
        return self.sorted_axes(out)

    def layout(self, name: str) -> tuple[str, ...]:
        """Returns the axes of a declared tensor as it is stored."""
        d = self.mixer.declared[name]
        if d.target is None:
            return self.declared_axes(d, d.axes)
        parts = (d.each, d.target, d.axes)
        return tuple(a for part in parts for a in self.declared_axes(d, part))

    def shape(self, name: str) -> Value:
        """Returns a value with the axes and the field of a name, by running its text on zeros."""
        if name not in self.shapes:
            before, self.sketch = self.sketch, True
            d = self.mixer.declared.get(name)
            if d is not None and d.kind in ("state", "input"):
                axes = self.declared_axes(d, d.axes)
                dtype = self.dtype.to_complex() if "complex" in d.flags else self.dtype
                zero = torch.zeros(1, *(self.sizes[a] for a in axes), dtype=dtype)
                self.shapes[name] = Value(axes, zero)
            else:
                self.shapes[name] = self.value(self.mixer.definitions[name], Place({"i": 0}))
            self.sketch = before
        return self.shapes[name]

    # --- names ------------------------------------------------------------------------------------

    def at(self, name: str, token: int) -> Value:
        """Returns a stream or state at a token; zero outside, but for a given state."""
        if self.sketch:
            return self.shape(name)
        if (name, token) in self.known:
            return self.known[name, token]
        d = self.mixer.declared.get(name)
        if not 0 <= token < self.length:
            like = self.shape(name)
            start = self.length if d is not None and "backward" in d.flags else -1
            if name in self.initial and token == start:
                return Value(like.axes, self.initial[name])
            rises = d is not None and self.mixer.definitions.get(name, ())[:2] == ("call", "max")
            return Value(like.axes, torch.full_like(like.data, LOWEST if rises else 0))
        if d is not None and d.kind == "input":
            out = Value(self.shape(name).axes, self.values[name][:, token])
        elif name in self.mixer.flows:
            out = self.flowed(name, token)
        else:
            out = self.value(self.mixer.definitions[name], Place({"i": token}))
            if d is not None:
                out = self.expanded(out, self.shape(name).axes)
                if "complex" in d.flags:
                    out = Value(out.axes, out.data.to(self.dtype.to_complex()))
        self.known[name, token] = out
        return out

    def constant(self, name: str) -> Value:
        """Returns a parameter or buffer."""
        return Value(self.layout(name), self.stored(name).unsqueeze(0))

    def stored(self, name: str) -> Tensor:
        """Returns the tensor of a parameter or buffer; zeros where only axes are asked for."""
        if name in self.values or not self.sketch:
            return self.values[name]
        complex_ = "complex" in self.mixer.declared[name].flags
        dtype = self.dtype.to_complex() if complex_ else self.dtype
        return torch.zeros([self.sizes[a] for a in self.layout(name)], dtype=dtype)

    def name(self, name: str, place: Place) -> Value:
        m = self.mixer
        if name in place.arguments:
            return self.value(*place.arguments[name])
        if name in self.held:
            return self.held[name]
        if name in m.constants:
            return self.value(m.constants[name], Place({}))
        if name in m.dims:
            return self.number(self.sizes[name])
        if name in place.tokens and name not in m.definitions:
            return self.number(place.tokens[name])
        if name in m.declared and m.declared[name].kind in ("param", "buffer"):
            return self.constant(name)
        if name in m.definitions or name in m.flows or name in m.declared:
            return self.at(name, place.tokens.get("i", 0))
        if name == "first":
            return self.number(place.tokens["i"] == 0)
        if name == "pi":
            return self.number(math.pi)
        raise NameError(name)

    def token(self, tree: Tree, place: Place) -> int:
        """Returns the token that an index means."""
        return round(float(self.value(tree, place).data.real))

    # --- expressions ------------------------------------------------------------------------------

    def value(self, tree: Tree, place: Place) -> Value:
        return getattr(self, f"_{tree[0]}")(tree, place)  # type: ignore[no-any-return]

    def _num(self, tree: Tree, place: Place) -> Value:
        return self.number(tree[1])

    def _name(self, tree: Tree, place: Place) -> Value:
        return self.name(tree[1], place)

    def _neg(self, tree: Tree, place: Place) -> Value:
        v = self.value(tree[1], place)
        return Value(v.axes, -v.data)

    def _add(self, tree: Tree, place: Place) -> Value:
        out = self.value(tree[2][0], place)
        for sign, part in zip(tree[1][1:], tree[2][1:], strict=True):
            how = torch.add if sign == "+" else torch.sub
            out = self.joined(how, out, self.value(part, place))
        return out

    def _mul(self, tree: Tree, place: Place) -> Value:
        out = self.value(tree[2][0], place)
        for sign, part in zip(tree[1][1:], tree[2][1:], strict=True):
            how = torch.mul if sign == "*" else torch.div
            out = self.joined(how, out, self.value(part, place))
        return out

    def _outer(self, tree: Tree, place: Place) -> Value:
        out = self.value(tree[1][0], place)
        for part in tree[1][1:]:
            out = self.joined(torch.mul, out, self.value(part, place))
        return out

    def _dot(self, tree: Tree, place: Place) -> Value:
        out = self.value(tree[1][0], place)
        for part in tree[1][1:]:
            other = self.value(part, place)
            (axis,) = (a for a in out.axes if a in other.axes and not self.mixer.dims[a][0])
            out = self.reduced("sum", axis, self.joined(torch.mul, out, other))
        return out

    def _pow(self, tree: Tree, place: Place) -> Value:
        base, power = self.value(tree[1], place), self.value(tree[2], place)
        if power.data.numel() == 1 and not power.data.requires_grad:
            whole = float(power.data.real)
            if whole == round(whole) and abs(whole) <= 64:
                out = torch.ones_like(base.data)
                for _ in range(abs(round(whole))):
                    out = out * base.data
                return Value(base.axes, 1 / out if whole < 0 else out)
        return self.joined(torch.pow, base, power)

    def _apply(self, tree: Tree, place: Place) -> Value:
        return self.mapped(tree[1], self.value(tree[2], place))

    def mapped(self, name: str, v: Value) -> Value:
        """Applies a linear map."""
        d = self.mixer.declared[name]
        each, target, source = (self.declared_axes(d, a) for a in (d.each, d.target, d.axes))
        letters = {a: chr(ord("a") + k) for k, a in enumerate(self.order)}
        v = self.expanded(v, self.sorted_axes((*v.axes, *each, *source)))
        axes = self.sorted_axes((*(a for a in v.axes if a not in source), *target))
        taken = {a: letters[a].upper() if a in source else letters[a] for a in letters}
        stored = "".join((*(letters[a] for a in (*each, *target)), *(taken[a] for a in source)))
        argument = "".join(taken[a] for a in v.axes)
        matrix, result = self.stored(name), "".join(letters[a] for a in axes)
        kind = torch.promote_types(matrix.dtype, v.data.dtype)
        rule = f"{stored},Z{argument}->Z{result}"
        return Value(axes, torch.einsum(rule, matrix.to(kind), v.data.to(kind)))

    def _index(self, tree: Tree, place: Place) -> Value:
        _, name, brackets = tree
        if name in place.arguments:
            inner, outer = place.arguments[name]
            assert inner[0] == "name", "only names have a past"
            if inner[1] in outer.arguments:
                return self._index(("index", inner[1], brackets), _both(outer, place))
            return self.at(inner[1], self.token(brackets[0], place))
        if name in ("ones", "iota") and name not in self.mixer.declared:
            axes = self.sorted_axes(b[1] for b in brackets)
            sizes = [self.sizes[a] for a in axes]
            if name == "ones":
                return Value(axes, torch.ones(1, *sizes, dtype=self.dtype))
            return Value(axes, torch.arange(sizes[0], dtype=self.dtype).unsqueeze(0))
        return self.at(name, self.token(brackets[0], place))

    def _call(self, tree: Tree, place: Place) -> Value:
        _, name, brackets, given = tree
        m = self.mixer
        if name in m.functions:
            names, body = m.functions[name]
            bound = {n: (a, place) for n, a in zip(names, given, strict=True)}
            return self.value(body, Place(place.tokens, bound))
        if name in m.declared:
            return self.mapped(name, self.value(given[0], place))
        if name in ("sum", "prod") and brackets[0][0] == "compare":
            return self.over_time(name, brackets[0], given[0], place)
        if name == "fir":
            return self.filtered(brackets[0][1], given[0], given[1], place)
        if name == "taylor":
            return self.series(brackets[0], given[0], place)
        if name == "rename":
            old, new = (b[1] for b in brackets)
            v = self.value(given[0], place)
            axes = [new if a == old else a for a in v.axes]
            goal = self.sorted_axes(axes)
            order = [0, *(1 + axes.index(a) for a in goal)]
            return Value(goal, v.data.permute(order))
        values = [self.value(g, place) for g in given]
        if brackets:
            out = values[0]
            for b in brackets:
                out = self.reduced(name, b[1], out)
            return out
        return self.joined(FUNCTIONS[name], *values)

    def reduced(self, how: str, axis: str, v: Value) -> Value:
        """A reduction, or a function along an axis."""
        v = self.expanded(v, self.sorted_axes((*v.axes, axis)))
        dim = 1 + v.axes.index(axis)
        rest = tuple(a for a in v.axes if a != axis)
        match how:
            case "sum":
                return Value(rest, v.data.sum(dim))
            case "mean":
                return Value(rest, v.data.sum(dim) / self.sizes[axis])
            case "max":
                return Value(rest, v.data.amax(dim))
            case "softmax":
                e = torch.exp(v.data - v.data.amax(dim, keepdim=True))
                return Value(v.axes, e / e.sum(dim, keepdim=True))
            case "l2norm" | "rmsnorm":
                square = (v.data * v.data).sum(dim, keepdim=True)
                safe = torch.where(square > 0, square, 1.0)  # √ has no derivative at 0
                length = torch.where(square > 0, safe.sqrt(), 0.0).clamp_min(1e-12)
                scale = math.sqrt(self.sizes[axis]) if how == "rmsnorm" else 1.0
                return Value(v.axes, v.data / length * scale)
        raise NameError(how)

    def over_time(self, how: str, bounds: Tree, body: Tree, place: Place) -> Value:
        """A sum or product over the tokens of the sequence that the bounds allow."""
        _, operators, parts = bounds
        which = 1 if len(operators) == 2 else 0
        word = parts[which][1]
        if self.sketch:
            return self.value(body, Place({**place.tokens, word: 0}, place.arguments))
        limits = [None if k == which else self.token(p, place) for k, p in enumerate(parts)]
        tokens = range(self.length) if how == "sum" else range(-self.length, 2 * self.length)
        out: Value | None = None
        for token in tokens:
            clock = [token if x is None else x for x in limits]
            pairs = zip(operators, clock, clock[1:], strict=False)
            if not all(_COMPARE[o](a, b) for o, a, b in pairs):
                continue
            v = self.value(body, Place({**place.tokens, word: token}, place.arguments))
            out = v if out is None else self.joined(
                torch.add if how == "sum" else torch.mul, out, v
            )  # fmt: skip
        if out is not None:
            return out
        before, self.sketch = self.sketch, True
        like = self.value(body, Place({**place.tokens, word: 0}, place.arguments))
        self.sketch = before
        full = torch.zeros_like if how == "sum" else torch.ones_like
        return Value(like.axes, full(like.data))

    def filtered(self, axis: str, weight: Tree, stream: Tree, place: Place) -> Value:
        """Σ_r w_r x_{i-r}."""
        w = self.value(weight, place)
        w = self.expanded(w, self.sorted_axes((*w.axes, axis)))
        dim = 1 + w.axes.index(axis)
        rest = tuple(a for a in w.axes if a != axis)
        out = self.number(0)
        for r in range(self.sizes[axis]):
            back = ("add", ["+", "-"], [("name", "i"), ("num", float(r))])
            # A filter sees values at tokens; a given initial state is none of them.
            name = self.argument(stream, place)
            token = self.token(back, place)
            inside = self.sketch or 0 <= token < self.length
            like = self.shape(name)
            none = Value(like.axes, torch.zeros_like(like.data))
            x = self.at(name, token) if inside else none
            out = self.joined(
                torch.add, out, self.joined(torch.mul, Value(rest, w.data.select(dim, r)), x)
            )
        return out

    def argument(self, tree: Tree, place: Place) -> str:
        """The name that an argument stands for."""
        while tree[1] in place.arguments:
            tree, place = place.arguments[tree[1]]
        assert tree[0] == "name", "only names have a past"
        return str(tree[1])

    def series(self, order: Tree, argument: Tree, place: Place) -> Value:
        """Σ_{r ≤ P} s^r / r!."""
        s = self.value(argument, place)
        power, out = torch.ones_like(s.data), torch.zeros_like(s.data)
        for r in range(self.token(order, place) + 1):
            out = out + power / math.factorial(r)
            power = power * s.data
        return Value(s.axes, out)

    # --- flows ------------------------------------------------------------------------------------

    def flowed(self, name: str, token: int) -> Value:
        """One step of x' = A x + b: A and b are found from the drift at 0 and at unit vectors."""
        drift, rule, step = self.mixer.flows[name]
        axes = self.shape(name).axes
        sizes = [self.sizes[a] for a in axes]
        count = math.prod(sizes)
        complex_ = "complex" in self.mixer.declared[name].flags
        kind = self.dtype.to_complex() if complex_ else self.dtype
        backward = "backward" in self.mixer.declared[name].flags
        before = self.at(name, token + 1 if backward else token - 1).data.to(kind)

        def at(x: Tensor) -> Tensor:
            self.held[name] = Value(axes, x.reshape(1, *sizes))
            out = self.expanded(self.value(drift, Place({"i": token})), axes).data
            del self.held[name]
            return out.reshape(-1, count).to(kind)

        delta = self.expanded(self.value(step, Place({"i": token})), axes).data.reshape(-1, count)
        offset = at(torch.zeros(count, dtype=kind))
        x = before.reshape(-1, count)
        if rule == "bilinear":
            columns = [at(unit) - offset for unit in torch.eye(count, dtype=kind)]
            matrix = delta.unsqueeze(-1) * torch.stack(columns, -1)
            one = torch.eye(count, dtype=kind)
            right = (one + matrix / 2) @ x.unsqueeze(-1) + (delta * offset).unsqueeze(-1)
            after = torch.linalg.solve(one - matrix / 2, right.expand(
                max(len(matrix), len(right)), -1, -1)).squeeze(-1)  # fmt: skip
        else:
            rate = delta * (at(torch.ones(count, dtype=kind)) - offset)
            scale = exprel(rate) if rule == "zoh" else torch.ones_like(rate)
            after = torch.exp(rate) * x + scale * delta * offset
        return Value(axes, after.reshape(-1, *sizes))


def _both(outer: Place, inner: Place) -> Place:
    return Place(inner.tokens, outer.arguments)


def exprel(x: Tensor) -> Tensor:
    """(e^x - 1) / x, by its series near 0."""
    near = x.abs() < 0.1
    far = torch.where(near, torch.ones_like(x), x)
    out = torch.zeros_like(x)
    small = torch.where(near, x, torch.zeros_like(x))
    for k in range(12, -1, -1):
        out = out * small + 1 / math.factorial(k + 1)
    return torch.where(near, out, torch.expm1(far) / far)


def _sign(x: Tensor) -> Tensor:
    return torch.sgn(x)


def _cplx(a: Tensor, b: Tensor) -> Tensor:
    return a + 1j * b


def _real(x: Tensor) -> Tensor:
    return x.real if x.is_complex() else x


def _softplus(x: Tensor) -> Tensor:
    return torch.logaddexp(x, torch.zeros_like(x))


def _larger(a: Tensor, b: Tensor) -> Tensor:
    return torch.maximum(*torch.broadcast_tensors(a, b))


def _smaller(a: Tensor, b: Tensor) -> Tensor:
    return torch.minimum(*torch.broadcast_tensors(a, b))


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "exp": torch.exp,
    "log": torch.log,
    "log1p": torch.log1p,
    "expm1": torch.expm1,
    "exprel": exprel,
    "sqrt": torch.sqrt,
    "abs": torch.abs,
    "sign": _sign,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "softplus": _softplus,
    "logsigmoid": lambda x: -_softplus(-x),
    "relu": torch.relu,
    "elu": lambda x: torch.where(x > 0, x, torch.expm1(torch.clamp_max(x, 0))),
    "silu": lambda x: x * torch.sigmoid(x),
    "gelu": lambda x: x * (1 + torch.erf(x / math.sqrt(2))) / 2,
    "max": _larger,
    "min": _smaller,
    "Re": _real,
    "Im": lambda x: x.imag if x.is_complex() else torch.zeros_like(x),
    "conj": lambda x: x.conj().resolve_conj(),
    "cplx": _cplx,
    "cis": lambda x: torch.exp(1j * x),
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "≤": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "≥": lambda a, b: a >= b,
}


def sizes_of(mixer: Program, given: Mapping[str, int]) -> dict[str, int]:
    """Returns the size of every axis: given, or as the text computes it.

    Args:
        mixer: a mixer.
        given: sizes by name.
    """
    out = dict(given)
    for name, (_, tree) in mixer.dims.items():
        if name not in out and tree is not None:
            known = Literal(mixer, out, {}, {}, 0)
            out[name] = round(float(known.value(tree, Place({})).data))
    return out
