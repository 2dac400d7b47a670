"""A program of complex numbers as one of real numbers, which is what ONNX Runtime computes with.

The traced program is run once more, operator by operator, with two real tensors in place of each
complex one, as `parts` says; what is traced then is the real form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch._higher_order_ops.scan import scan_op
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Interpreter, Node

from dsfc.programs.parts import Parts, in_parts, joined, separated
from dsfc.programs.program import Program, again, named_function
from dsfc.programs.token_loop import NoProgram, laid_out


def real_form(program: Program) -> Program:
    """Returns a program without complex tensors; the same where it has none.

    Each complex input and output becomes a real one with a last axis of 2, the real and imaginary
    parts, as of `torch.view_as_real`; the program names them in `parts`.

    Args:
        program: the program.

    Raises:
        NoProgram: an operator of complex numbers has no rule.
    """
    if not any(map(_is_complex, _nodes(program.exported.graph_module))):
        return program
    program = replace(program, parts=_complex_names(program))
    real = again(program, partial(_RealForm, program))
    left = next(filter(_is_complex, _nodes(real.exported.graph_module)), None)
    if left is not None:
        raise NoProgram(f"ONNX has no complex numbers, and {left.name} stays complex")
    return real


def _complex_names(program: Program) -> tuple[str, ...]:
    """Inputs and outputs that are complex; a state has the dtype of the state after."""
    example = program.example(2, 1, 0)
    named = dict(zip(program.outputs, program.eager(dict(example)), strict=True))
    return tuple(name for name, x in (example | named).items() if x.is_complex())


def _nodes(module: GraphModule) -> list[Node]:
    """The nodes of a graph and of the loops in it."""
    inner = [m for m in module.modules() if isinstance(m, GraphModule)]
    return [node for m in inner for node in m.graph.nodes]


def _is_complex(node: Node) -> bool:
    """Whether a node gives a complex tensor."""
    held = node.meta.get("val")
    each = held if isinstance(held, (tuple, list)) else (held,)
    return any(isinstance(x, Tensor) and x.is_complex() for x in each)


class _RealForm(nn.Module):
    """A program as a function of named real tensors."""

    def __init__(self, program: Program, exported: ExportedProgram) -> None:
        super().__init__()
        self._graph = _Graph(exported.graph_module)
        self._program = program
        self._held = [
            None if spec.kind is InputKind.USER_INPUT else self._keep(str(spec.target), exported)
            for spec in exported.graph_signature.input_specs
        ]
        self.forward = named_function(program.inputs, self._run)

    def _keep(self, name: str, exported: ExportedProgram) -> tuple[str, ...]:
        """Keeps a parameter, buffer or constant of a program; returns the names of its parts."""
        x = (exported.state_dict | exported.constants)[name].detach()
        number = len(self._buffers)  # no two names are one without their dots
        values = {"re": x.real, "im": x.imag} if x.is_complex() else {"all": x}
        parts = {f"{name.replace('.', '_')}_{part}_{number}": v for part, v in values.items()}
        for part, value in parts.items():
            self.register_buffer(part, value.clone())
        return tuple(parts)

    def _run(self, named: dict[str, Tensor]) -> tuple[Tensor, ...]:
        tensors = (
            separated(named[n]) if n in self._program.parts else named[n]
            for n in self._program.inputs
        )  # fmt: skip
        outs = self._graph.run(
            *(next(tensors) if names is None else _whole([getattr(self, n) for n in names])
              for names in self._held)
        )  # fmt: skip
        return tuple(joined(x) if isinstance(x, Parts) else x for x in outs)


class _Graph(Interpreter):
    """Runs a graph with `Parts` for its complex tensors."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.extra_traceback = False  # a refusal says what the rules say, not which node runs

    def run_node(self, n: Node) -> Any:  # noqa: ANN401 - what the operator gives
        args, named = self.fetch_args_kwargs_from_env(n)
        if n.target is scan_op:
            return _scanned(*args)
        if isinstance(n.target, OpOverload) and any(map(_is_complex, (n, *n.all_input_nodes))):
            return in_parts(n.target, *args, **named)
        return super().run_node(n)


def _scanned(
    body: GraphModule, states: Sequence[Any], rows: Sequence[Any], fixed: Sequence[Any]
) -> list[Any]:
    """The loop over tokens, each complex tensor of it two real ones."""
    taken = [*states, *rows, *fixed]
    results: list[Any] = []

    def step(*tensors: Any) -> list[Any]:  # noqa: ANN401 - tensors and open sizes
        results[:] = _Graph(body).run(*_like(taken, tensors))
        return _copied(results)

    outs = scan_op(step, _copied(states), _copied(rows), tuple(_copied(fixed)))
    return _like(results, outs)


def _copied(values: Sequence[Any]) -> list[Any]:
    """Copies in order, the two parts of a complex one after each other.

    What a loop takes and gives shares no memory; two parts may be views of one tensor.
    """
    flat = [x for v in values for x in ((v.re, v.im) if isinstance(v, Parts) else (v,))]
    return [laid_out(x) if isinstance(x, Tensor) else x for x in flat]


def _like(values: Sequence[Any], flat: Sequence[Any]) -> list[Any]:
    """Values of a flat sequence, two of them joined as parts wherever other values are parts."""
    rest: Iterator[Any] = iter(flat)
    return [Parts(next(rest), next(rest)) if isinstance(v, Parts) else next(rest) for v in values]


def _whole(parts: Sequence[Tensor]) -> Tensor | Parts:
    """A tensor of its parts, of which a real one has one."""
    return Parts(*parts) if len(parts) == 2 else parts[0]
