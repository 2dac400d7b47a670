"""Goes through a trace, operation by operation, and finds the node of every tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from dsfc.lift import constants
from dsfc.lift.axes import (
    Axes,
    Axis,
    Batch,
    Entry,
    Factor,
    Layout,
    Mismatch,
    Time,
    regroup,
    resolved,
)
from dsfc.lift.build import num, op
from dsfc.lift.failure import CannotLift
from dsfc.lift.ir import Input, Node, Param, Where
from dsfc.lift.trace import Lines, Trace, name_of
from dsfc.lift.values import Broadcast, Value

Anything = Any
"""What an operation takes or gives: a Value, a list of them, a number, a word."""


class Recogniser:
    """The values of one trace.

    Attributes:
        trace: the trace.
        operations: what each operation of PyTorch does, by its name.
        axes: which axes are one.
        broadcast: lays tensors over each other.
        inputs: the module's arguments.
        buffers: formulas of the buffers that have one, by name.
    """

    def __init__(self, trace: Trace, operations: Mapping[str, Callable[..., Anything]]) -> None:
        """Starts before the first operation.

        Args:
            trace: the trace.
            operations: what each operation of PyTorch does, by its name.
        """
        self.trace = trace
        self.operations = operations
        self.axes = Axes()
        self.broadcast = Broadcast(self.axes, trace.length)
        self.lines = Lines()
        self.inputs: dict[str, tuple[Input, Layout]] = {}
        self.buffers: dict[str, Node] = {}
        self._env: dict[torch.fx.Node, Anything] = {}
        self._forced: dict[torch.fx.Node, Anything] = {}
        self._now: torch.fx.Node | None = None
        self._line: Where | None = None
        self._variables = self._assigned()

    def run(self) -> Value:
        """Returns the output: the first tensor that the module returns with an axis of tokens.

        Raises:
            CannotLift: at the line of what cannot be lifted.
        """
        for node in self.trace.graph.nodes:
            self._now = node
            if node.op == "placeholder":
                self._env[node] = self._placeholder(node)
            elif node.op == "get_attr":
                self._env[node] = getattr(self.trace.graph.owning_module, str(node.target))
            elif node.op == "call_function":
                self._env[node] = self._located(node)
            elif node.op == "output":
                return self._output(node)
        raise CannotLift("the module returns nothing")

    def inline(self, graph: torch.fx.Graph, arguments: Sequence[Anything]) -> list[Anything]:
        """Runs the graph of a function on arguments, as a part of the operation under way."""
        outer, asked = self._now, iter(arguments)
        for node in graph.nodes:
            self._now = node
            if node.op == "placeholder":
                self._env[node] = next(asked)
            elif node.op == "call_function":
                self._env[node] = self._located(node)
            elif node.op == "output":
                self._now = outer
                return [self.value(a) for a in node.args[0]]
        raise CannotLift("a function returns nothing")

    def _output(self, node: torch.fx.Node) -> Value:
        outputs = node.args[0]
        assert isinstance(outputs, tuple | list)
        returned = [self._env.get(a) for a in outputs if isinstance(a, torch.fx.Node)]
        for value in returned:
            if isinstance(value, Value):
                value = self.whole(value)
                if any(t.size == self.trace.length for t in value.times):
                    return value
        raise CannotLift("no output has an axis of tokens; a mixer gives a value at every token")

    def _located(self, node: torch.fx.Node) -> Anything:
        """Runs an operation; what it refuses is said of the user's line."""
        where = self._line = self.lines.where(node) or self._line
        try:
            result = self._operation(node)
        except CannotLift as e:
            e.where = e.where or where
            raise
        except Mismatch:
            problem = (
                f"{name_of(node)} mixes entries of one axis with another, which axes cannot say"
            )
            raise CannotLift(problem, where) from None
        except ValueError as e:
            raise CannotLift(f"{name_of(node)}: {e}", where) from None
        if isinstance(result, Value):
            if not isinstance(result.node, Param):
                self.axes.note(result.layout)
            self._placed(result.node, where, node)
        return result

    def _placed(self, node: Node, where: Where | None, built: torch.fx.Node) -> None:
        """Says of a new node where it was made; what ends a line has the variable it assigns."""
        if where is None or isinstance(node, Param | Input):
            return
        name = self._variables.get(built)
        if node.where is None or (name and node.where.name is None):
            node.where = Where(where.file, where.line, name)

    def _assigned(self) -> dict[torch.fx.Node, str]:
        """The variable that each operation's result is assigned to.

        Operations of one line stand together. The last of them makes its value; where the line
        assigns several, they are as many equal groups, or items of one result.
        """
        out: dict[torch.fx.Node, str] = {}
        groups: list[tuple[Where | None, list[torch.fx.Node]]] = []
        for node in self.trace.graph.nodes:
            if node.op == "call_function" and name_of(node) not in _NOTHING:
                where = self.lines.where(node)
                if not groups or groups[-1][0] != where:
                    groups.append((where, []))
                groups[-1][1].append(node)
        for where, nodes in groups:
            names = self.lines.names(where) if where else []
            if names and len(nodes) % len(names) == 0:
                each = len(nodes) // len(names)
                ends = nodes[each - 1 :: each]
                out |= {n: w for n, w in zip(ends, names, strict=True) if w}
            items = [n for n in nodes if name_of(n) == "getitem"]
            if len(items) == len(names) > 1:
                out |= {n: w for n, w in zip(items, names, strict=True) if w}
        return out

    def _placeholder(self, node: torch.fx.Node) -> Value | None:
        if node.name in self.trace.arrays:
            path, tensor, kind = self.trace.arrays[node.name]
            if kind == "constant" or (kind == "buffer" and constants.is_mask(tensor)):
                return Value(num(0), (), const=tensor)
            return self._parameter(path, tensor, kind == "buffer")
        shape = self.trace.inputs.get(node.name)
        if shape is None:
            return None
        special: Mapping[int, Factor] = {-1: Batch(self.trace.batch), -2: Time(self.trace.length)}
        layout: Layout = tuple((special[s] if s < 0 else Axis(s),) if s != 1 else () for s in shape)
        own = tuple(f for e in layout for f in e if isinstance(f, Axis))
        if not any(isinstance(f, Time) for e in layout for f in e):
            raise CannotLift(f"the argument {node.name} has no axis of tokens")
        built = Input(node.name, own)
        self.inputs[node.name] = built, layout
        self.axes.note(layout)
        return Value(built, layout)

    def _parameter(self, path: str, tensor: torch.Tensor, buffer: bool) -> Value:
        layout: Layout = tuple((Axis(s),) if s != 1 else () for s in tensor.shape)
        dims = tuple(tuple(f for f in e if isinstance(f, Axis)) for e in layout)
        built = Param(path, dims, is_complex=tensor.is_complex(), buffer=buffer)
        if buffer and len(built.dims) == 1 and not tensor.is_complex():
            formula = (
                constants.along(tensor.double().flatten(), built.dims[0][0]) if layout[0] else None
            )
            if formula is not None:
                self.buffers[path] = formula
        return Value(built, layout)

    def _operation(self, node: torch.fx.Node) -> Anything:
        name = name_of(node)
        if name in _NOTHING:
            return None
        args = [self.value(a) for a in node.args]
        kwargs = {k: self.value(v) for k, v in node.kwargs.items()}
        if name == "getitem":
            return args[0][args[1]]
        if constants.foldable(node, args, kwargs):
            built = constants.fold(node, args, kwargs)
            if name in ("select", "slice") and isinstance(built, Value):
                built.view = self._view(node, args[0])
            return built
        if name not in self.operations:
            raise CannotLift(f"{name} is no operation that a spec has", hint=_HINTS.get(name))
        return self.operations[name](
            self, *args, **{k: v for k, v in kwargs.items() if k not in _IGNORED}
        )

    def _view(self, node: torch.fx.Node, base: Value) -> tuple[torch.fx.Node, int] | None:
        """The token of a constant tensor that a part of it is; it may be assigned to."""
        dim, first = (int(a) if isinstance(a, int) else 0 for a in (*node.args[1:3], 0)[:2])
        assert base.const is not None and isinstance(node.args[0], torch.fx.Node)
        is_token = base.const.shape[dim] == self.trace.length
        one = name_of(node) == "select" or self._size(node, dim) == 1
        return (node.args[0], first % self.trace.length) if is_token and one else None

    @staticmethod
    def _size(node: torch.fx.Node, dim: int) -> int:
        return int(node.meta["val"].shape[dim])

    def value(self, argument: Anything) -> Anything:
        """Returns what an argument of the trace stands for."""
        if isinstance(argument, torch.fx.Node):
            if argument not in self._env:
                raise CannotLift(f"{argument.name} is no value")
            return self._env[argument]
        if isinstance(argument, list | tuple):
            return [self.value(a) for a in argument]
        return argument

    # What operations ask for

    @property
    def now(self) -> torch.fx.Node:
        """The operation of the trace that is under way."""
        assert self._now is not None
        return self._now

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its result."""
        return tuple(int(s) for s in self.now.meta["val"].shape)

    def argument(self, k: int) -> torch.fx.Node:
        """The operation that made an argument of the present one."""
        built = self.now.args[k]
        assert isinstance(built, torch.fx.Node)
        return built

    def own(self, k: int) -> None:
        """Refuses an argument that is a part or a view of another tensor.

        Raises:
            CannotLift: it is one, and what is done to it in place is done to the other too.
        """
        if name_of(self.argument(k)) in _VIEWS:
            hint = "make a new tensor instead"
            raise CannotLift("a part or a view of a tensor is changed in place", hint=hint)

    def replace(self, node: torch.fx.Node, value: Value) -> None:
        """Gives a tensor another value, as an operation in place does."""
        self._env[node] = value

    def stored(self, node: torch.fx.Node) -> Value:
        """Returns the value that a tensor has by now."""
        value = self._env[node]
        assert isinstance(value, Value)
        return value

    def whole(self, value: Anything) -> Value:
        """Returns an argument as a value with a node: numbers and constants too."""
        if isinstance(value, bool | int | float):
            return Value(num(value) if math.isfinite(value) else num(0), ())
        if not isinstance(value, Value):
            raise CannotLift(f"{name_of(self.now)} has an argument that is no tensor")
        if value.tokens:
            raise CannotLift("a tensor that is filled token by token is read before it is full")
        if value.const is None:
            return value
        known = constants.named(value.const, self.trace.length, self.trace.batch)
        if known is not None:
            return Value(known[0], known[1])
        if value.maker is None:
            raise CannotLift("a constant tensor is none that a formula says", hint=_CONSTANT)
        return self._unfolded(value.maker)

    def _unfolded(self, built: torch.fx.Node) -> Value:
        """The value of a constant by the operation that made it, from its parts."""
        if built not in self._forced:
            name = name_of(built)
            if name not in self.operations or name in _FACTORIES:
                raise CannotLift(f"{name} makes a constant that no formula says", hint=_CONSTANT)
            before, self._now = self._now, built
            args = [self.value(a) for a in built.args]
            args = [
                self.whole(a) if isinstance(a, Value) and a.const is not None else a for a in args
            ]
            kwargs = {k: self.value(v) for k, v in built.kwargs.items() if k not in _IGNORED}
            self._forced[built] = self.operations[name](self, *args, **kwargs)
            self._now = before
        value = self._forced[built]
        assert isinstance(value, Value)
        return value

    def elementwise(self, name: str, *values: Anything) -> Value:
        """Returns an elementwise operation of tensors and numbers."""
        known = [self.whole(v) for v in values]
        nodes, layout = self.broadcast.together(known)
        padded = any(isinstance(f, Time) and f.delay > 0 for e in layout for f in e)
        if padded and name not in ("*", "neg", "/"):
            raise CannotLift(f"{name} of a padded tensor", hint="cut the padding off first")
        return Value(op(name, *nodes), layout)

    def unary(self, name: str, value: Anything) -> Value:
        """Returns an elementwise operation of one tensor."""
        return self.elementwise(name, value)

    def entry(self, value: Value, dim: int) -> tuple[int, Entry]:
        """Returns a dimension, counted from the front, and what it is."""
        at = dim % len(value.layout)
        return at, resolved(value.layout[at])

    def viewed(self, value: Value, sizes: Sequence[int]) -> Value:
        """Returns a tensor with other dimensions and the same entries."""
        return Value(value.node, regroup(value.layout, sizes))


_IGNORED = {
    "pin_memory",
    "device",
    "dtype",
    "layout",
    "memory_format",
    "non_blocking",
    "copy",
    "implicit",
}
_VIEWS = {
    *("select", "slice", "narrow", "getitem", "view", "transpose", "permute", "t", "unsqueeze"),
    *("squeeze", "expand", "reshape", "flatten", "unflatten", "diagonal", "movedim", "alias"),
}
_NOTHING = {"_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size"}
_FACTORIES = {
    "zeros",
    "ones",
    "full",
    "arange",
    "eye",
    "empty",
    "new_zeros",
    "new_ones",
    "zeros_like",
}
_CONSTANT = (
    "a formula says numbers, arange, a + b * arange, powers of these, "
    "and masks of tokens up to the present one"
)
_FILTER = "write the convolution as a state or by conv1d; long filters of FFTs are not lifted"
_HINTS = {
    "flip": "a spec runs backwards by a state declared `backward`; it is not lifted",
    "fft_rfft": _FILTER,
    "fft_fft": _FILTER,
    "sort": "a spec has no order of values",
    "topk": "a spec has no order of values",
    "argmax": "a spec has no order of values",
    "index": "read tokens by slices; a spec has no table of indices",
    "gather": "read tokens by slices; a spec has no table of indices",
    "embedding": "lift the layer behind the embedding",
    "dropout": "set dropout to 0; a spec has no random values",
    "linalg_inv": "write the inverse as the recursion that it solves",
    "linalg_solve_triangular": "write the solution as the recursion over tokens that it is",
    "_vmap_increment_nesting": "write an associative scan as a loop over tokens or by `scan`",
    "lazy_load_decompositions": "write an associative scan as a loop over tokens or by `scan`",
    "roll": "a spec has no cyclic shift; pad in front and cut the end off",
}
