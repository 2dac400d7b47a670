"""Writes nodes down as a spec: names axes and values, and makes the syntax tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from dsfc.lift.axes import Axis, axes_of
from dsfc.lift.expressions import Called, Expressions, at_a_token, number
from dsfc.lift.failure import CannotLift
from dsfc.lift.ir import (
    Apply,
    At,
    Before,
    Contract,
    Delay,
    Fir,
    First,
    Input,
    Iota,
    Lag,
    Masked,
    Node,
    Now,
    Num,
    Ones,
    Op,
    Param,
    Past,
    Reduce,
    Run,
    State,
    Where,
    axes,
    children,
    walk,
)
from dsfc.lift.names import Names
from dsfc.syntax import ast

_SPREAD = ast.Num(Fraction(1, 50))
"""How far parameters are drawn from 0; a trained module has values of its own."""

_PAIRWISE = (At, Lag, Masked, Run)
_LEAVES = (Param, Input, Num, Ones, Iota, First, Before, Now)


@dataclass
class Written:
    """A spec with the way back to the module.

    Attributes:
        spec: the syntax tree.
        params: the parameter or buffer of the module that each array of the spec is.
        axes: names of axes.
        places: the user's line of each definition.
        output: axes of the output.
            inputs: names of the module's arguments, by the names that the spec has for them.
    """

    spec: ast.Spec
    params: dict[str, Param] = field(default_factory=dict)
    axes: dict[Axis, str] = field(default_factory=dict)
    places: dict[str, Where] = field(default_factory=dict)
    output: tuple[Axis, ...] = ()
    inputs: dict[str, str] = field(default_factory=dict)


class Writer:
    """Writes one output as a mixer."""

    def __init__(
        self,
        name: str,
        title: str,
        output: Node,
        inputs: Sequence[Input],
        order: Sequence[str] = (),
        buffers: Mapping[str, Node] = MappingProxyType({}),
    ) -> None:
        """Finds what there is to declare.

        Args:
            name: of the mixer.
            title: what it is, for the header.
            output: the value of `y`.
            inputs: arguments of the module.
            order: parameters of the module.
            buffers: formulas of buffers whose values have one, by their names in the module.
        """
        self.buffers = buffers
        self.order = order
        self.name, self.title, self.output = name, title, output
        self.known: dict[int, tuple[Axis, ...]] = {}
        self.nodes = list(walk(output))
        self.inputs = [i for i in inputs if any(n is i for n in self.nodes)] or list(inputs[:1])
        self.states = list({id(n.state): n.state for n in self.nodes
                            if isinstance(n, Now | Before)}.values())  # fmt: skip
        self.timed: dict[int, bool] = {}
        self.names = Names(self._variables())
        self.called = Called()
        self.called.inputs = {id(i): self.names.value(i.name) for i in self.inputs}
        self.heads: set[Axis] = set()
        self.params = self._params()
        self.maps = self._maps()
        self._find_heads()
        self.called.axes = self._axis_names()
        self.text = Expressions(self.called, self.heads, self.maps, self.axes, self.over_time)
        self.definitions: list[tuple[str, Node]] = []

    # What is read

    def _variables(self) -> set[str]:
        places = [n.where for n in self.nodes] + [s.where for s in self.states]
        return {w.name for w in places if w is not None and w.name} | {i.name for i in self.inputs}

    def _params(self) -> dict[tuple[object, ...], Param]:
        seen = {n.key: n for n in self.nodes if isinstance(n, Param)}
        places = {path: k for k, path in enumerate(self.order)}
        return dict(sorted(seen.items(), key=lambda e: (places.get(e[1].path, 0), e[1].cuts)))

    def _maps(self) -> dict[tuple[object, ...], Apply]:
        """Parameters that are nothing but linear maps."""
        uses: dict[tuple[object, ...], Apply] = {}
        other: set[tuple[object, ...]] = set()
        for node in self.nodes:
            for child in children(node):
                if isinstance(child, Param):
                    if isinstance(node, Apply) and child is node.map:
                        uses.setdefault(child.key, node)
                    else:
                        other.add(child.key)
            if isinstance(node, Now | Before):
                for value in (node.state.update, node.state.start):
                    if isinstance(value, Param):
                        other.add(value.key)
        return {k: a for k, a in uses.items() if k not in other}

    def axes(self, node: Node) -> tuple[Axis, ...]:
        """The axes of a node."""
        return axes(node, self.known)

    def _find_heads(self) -> None:
        """Axes that both sides of a product share while neither has all of the other's."""
        for node in self.nodes:
            if isinstance(node, Op) and node.name in ("*", "/"):
                a, b = (set(self.axes(n)) for n in node.args)
                gone: set[Axis] = set()
            elif isinstance(node, Contract):
                a, b = set(self.axes(node.left)), set(self.axes(node.right))
                gone = set(axes_of(node.axes))
                self.heads |= (a & b) - gone
                continue
            else:
                continue
            if not (a <= b or b <= a):
                self.heads |= a & b
        inputs = {a for i in self.inputs for a in axes_of(i.axes)}
        if len(inputs) == 1:
            self.heads -= inputs

    def _axis_names(self) -> dict[Axis, str]:
        """Names: d of the input, h of heads, p of the output, n of what states keep, t of taps."""
        seen: dict[Axis, str] = {}
        inputs = [a for i in self.inputs for a in axes_of(i.axes)]
        output = self.axes(self.output)
        kept = [a for s in self.states for a in axes_of(s.axes)]
        scores = [
            a for n in self.nodes if isinstance(n, Contract | Reduce) for a in axes_of(n.axes)
        ]
        taps = [a for n in self.nodes if isinstance(n, Fir) for a in axes_of((n.taps,))]
        middle = [a for n in self.nodes if isinstance(n, Apply) for a in axes_of(n.source)]
        rest = [a for p in self.params.values() for d in p.dims for a in axes_of(d)]
        every = [a for n in self.nodes for a in self.axes(n)]
        features = [a for a in inputs if a not in self.heads]
        heads = self._ordered(self.heads, every)
        outer = output[:1] if len(output) > 1 else ()
        for group, base in (
            (features, "d"), (heads, "h"), (taps, "t"), (outer, "h"), (output, "p"), (kept, "n"),
            (scores, "n"), (middle, "r"), (rest, "m"), (every, "m"),
        ):  # fmt: skip
            for axis in group:
                if axis not in seen:
                    seen[axis] = self.names.axis(base)
        order = "dhnptrm"
        places = {a: k for k, a in enumerate(seen)}
        return dict(sorted(seen.items(), key=lambda e: (
            order.find(e[1][0]) if e[1][0] in order else len(order), places[e[0]])))  # fmt: skip

    @staticmethod
    def _ordered(some: set[Axis], order: Iterable[Axis]) -> list[Axis]:
        return list(dict.fromkeys(a for a in order if a in some))

    # What gets a name

    def over_time(self, node: Node) -> bool:
        """Whether a value depends on the token."""
        if id(node) not in self.timed:
            own = isinstance(node, Input | Now | Before | First | Delay | Fir | Past)
            self.timed[id(node)] = own or any(map(self.over_time, children(node)))
        return self.timed[id(node)]

    def _pairwise(self, node: Node) -> bool:
        """Whether a value depends on two tokens."""
        if isinstance(node, Past):
            return False
        return isinstance(node, _PAIRWISE) or any(map(self._pairwise, children(node)))

    def _name_values(self) -> None:
        """Names states, what sums read at j, the user's variables and what recurs."""
        for state in self.states:
            wanted = state.where.name if state.where and state.where.name else state.hint
            self.called.values[id(state)] = self.names.value(wanted)
        uses = Counter(id(c) for n in self.nodes for c in self._read_by(n))
        forced: set[int] = set()
        for node in self.nodes:
            if isinstance(node, At) and node.variable == 1 and self.over_time(node.arg):
                forced.add(id(node.arg))
            elif isinstance(node, Run | Fir | Delay):
                forced.add(id(node.arg))
        last: dict[str, Node] = {}
        for node in self.nodes:
            if node.where and node.where.name and self._worth(node):
                last[node.where.name] = node
        updates = {id(s.update) for s in self.states}
        for node in self.nodes:
            if isinstance(node, _LEAVES) or self._pairwise(node) or id(node) in updates:
                continue
            name = node.where.name if node.where else None
            mine = name is not None and last.get(name) is node
            again = uses[id(node)] > 1 and self._worth(node)
            if node is self.output and id(node) not in forced and uses[id(node)] == 0:
                continue
            if id(node) in forced or mine or again:
                self.called.values[id(node)] = self.names.value(name or self._described(node))
                self.definitions.append((self.called.values[id(node)], node))

    def _described(self, node: Node) -> str:
        """A name of a value that the user has none for."""
        if isinstance(node, Apply):
            return f"{self.called.params[node.map.key]}_{next(iter(self.called.inputs.values()))}"
        return "x"

    @staticmethod
    def _read_by(node: Node) -> tuple[Node, ...]:
        return children(node)

    def _worth(self, node: Node) -> bool:
        """Whether a value is more than a name, a number, or one of them at another token."""
        if isinstance(node, _LEAVES) or self._pairwise(node):
            return False
        if isinstance(node, Delay):
            return False
        if isinstance(node, Op) and node.name == "neg":
            return self._worth(node.args[0])
        if not self.over_time(node):
            return sum(1 for _ in walk(node)) > 3
        return True

    def _parts_read_as(self) -> dict[tuple[object, ...], str]:
        """The variable that is computed from each part of a parameter."""
        out: dict[tuple[object, ...], str] = {}
        for node in self.nodes:
            if node.where is None or node.where.name is None:
                continue
            below = list(children(node))
            while below:
                child = below.pop()
                if isinstance(child, Param) and child.cuts:
                    out.setdefault(child.key, node.where.name)
                elif child.where is None or child.where.name is None:
                    below += children(child)
        return out

    # The spec

    def write(self) -> Written:
        """Returns the spec."""
        read_as = self._parts_read_as()
        for key, param in self.params.items():
            self.called.params[key] = self.names.parameter(param, read_as.get(key))
        self._name_values()
        items: list[ast.Item] = []
        written = Written(ast.Spec(()), axes=dict(self.called.axes), output=self.axes(self.output))
        written.inputs = {self.called.inputs[id(i)]: i.name for i in self.inputs}
        decls = [*self._inputs(), *self._parameters(written), *self._states()]
        defs: list[ast.Item] = []
        for state in self.states:
            if state.update is None:
                raise CannotLift("a state of a loop is never updated", state.where)
        for name, node in self.definitions:
            defs.append(ast.Def(ast.Ident(name), self.text.value(node, defining=True)))
            if node.where:
                written.places[name] = node.where
        for state in self.states:
            name = self.called.values[id(state)]
            assert state.update is not None
            update = self.text.value(state.update, defining=True)
            shape = self.text.widened(update, self.axes(state.update), axes_of(state.axes))
            defs.append(ast.Def(ast.Ident(name), shape))
            if state.where:
                written.places[name] = state.where
        defs.append(ast.Def(ast.Ident("y"), self.text.value(self.output)))
        if self.output.where:
            written.places["y"] = self.output.where
        defs = self._in_order(defs)
        used = {a for item in (*decls, *defs) for a in self._axes_in(item)}
        dims = tuple(
            ast.Dim(ast.Ident(n), axis in self.heads, self._size(axis))
            for axis, n in self.called.axes.items()
            if n in used
        )
        if dims:
            items.append(ast.Dims(dims))
        items += [*decls, *defs]
        unit = ast.MixerUnit(ast.Ident(self.name), ast.Provenance(self.title), None, tuple(items))
        written.spec = ast.Spec((unit,))
        return written

    def _size(self, axis: Axis) -> ast.Num | None:
        """The size of the module's axis; the width of the input is left to the caller."""
        free = any(axis in axes_of(i.axes) for i in self.inputs) and axis not in self.heads
        return None if free else ast.Num(Fraction(axis.size))

    def _axes_in(self, item: ast.Item) -> set[str]:
        out: set[str] = set()
        if isinstance(item, ast.Decl) and item.type is not None:
            parts = [item.type.axes] if isinstance(item.type, ast.TensorType) else [
                item.type.each, item.type.source, item.type.target]  # fmt: skip
            out |= {a.text for part in parts for a in part}
        if isinstance(item, ast.Def):
            known = set(self.called.axes.values())
            out |= {n.id for n in ast.walk(item.expr) if isinstance(n, ast.Name) and n.id in known}
        return out

    def _in_order(self, defs: list[ast.Item]) -> list[ast.Item]:
        """Definitions behind what they read at the same token."""
        by_name = {d.name.text: d for d in defs if isinstance(d, ast.Def)}
        out: list[ast.Item] = []
        done: set[str] = set()

        def visit(name: str) -> None:
            if name in done or name not in by_name:
                return
            done.add(name)
            for node in ast.walk(by_name[name].expr):
                if isinstance(node, ast.Name):
                    visit(node.id)
                elif isinstance(node, ast.Call) or at_a_token(node):
                    visit(node.name.text)
            out.append(by_name[name])

        for name in (*(n for n in by_name if n != "y"), "y"):
            visit(name)
        return out

    def _inputs(self) -> list[ast.Item]:
        return [
            self._decl(ast.DeclKind.INPUT, self.called.inputs[id(i)], self._type(axes_of(i.axes)))
            for i in self.inputs
        ]

    def _states(self) -> list[ast.Item]:
        complex_ = {id(s) for s in self.states if s.is_complex or self._complex_state(s)}
        return [
            self._decl(ast.DeclKind.STATE, self.called.values[id(s)], self._type(axes_of(s.axes)),
                       (ast.Flag.COMPLEX,) if id(s) in complex_ else ())
            for s in self.states
        ]  # fmt: skip

    def _complex_state(self, state: State) -> bool:
        if state.update is None:
            return False
        state.is_complex = False
        state.is_complex = self._complex(state.update)
        return state.is_complex

    def _complex(self, node: Node) -> bool:
        match node:
            case Param():
                return node.is_complex
            case Op(name=name) if name in ("Re", "Im", "abs"):
                return False
            case Op(name=name) if name in ("cplx", "cis"):
                return True
            case Now(state=state) | Before(state=state):
                return state.is_complex
        return any(map(self._complex, children(node)))

    def _parameters(self, written: Written) -> list[ast.Item]:
        out: list[ast.Item] = []
        for key, param in self.params.items():
            name = self.called.params[key]
            written.params[name] = param
            type_: ast.Type | None
            if key in self.maps:
                use = self.maps[key]
                each, source, target = ([ast.Ident(self.called.axes[a]) for a in axes_of(g)]
                                        for g in (use.each, use.source, use.target))  # fmt: skip
                type_ = ast.MapType(tuple(each), tuple(source), tuple(target))
            else:
                own = axes_of(a for d in param.dims for a in d)
                if len(own) < len([a for d in param.dims for a in axes_of(d)]):
                    problem = f"{param.path} is used entry by entry and has one axis twice"
                    raise CannotLift(problem, param.where)
                type_ = self._type(own)
            if param.path in self.buffers and not param.cuts and key not in self.maps:
                value = self.text.value(self.buffers[param.path])
                init = ast.Init(ast.InitKind.VALUE, value)
                out.append(self._decl(ast.DeclKind.BUFFER, name, type_, (), init))
                continue
            flags = (ast.Flag.COMPLEX,) if param.is_complex else ()
            start: ast.Expr = ast.Call(ast.Ident("normal"), (), (number(Fraction(0)), _SPREAD))
            if param.is_complex:
                start = ast.Call(ast.Ident("cplx"), (), (start, start))
            init = ast.Init(ast.InitKind.DRAW, start)
            out.append(self._decl(ast.DeclKind.PARAM, name, type_, flags, init))
        return out

    @staticmethod
    def _decl(
        kind: ast.DeclKind, name: str, type_: ast.Type | None, flags: tuple[ast.Flag, ...] = (),
        init: ast.Init | None = None,
    ) -> ast.Decl:  # fmt: skip
        return ast.Decl(kind, (ast.Ident(name),), type_, flags, init)

    def _type(self, own: Sequence[Axis]) -> ast.Type | None:
        if not own:
            return None
        return ast.TensorType(tuple(ast.Ident(self.called.axes[a]) for a in own))
