"""The operators of an emitted module as loops over tokens that need nothing but PyTorch.

An operator of a module takes coefficients of all tokens and the states before the first, and gives
what is read at all tokens and the states after the last. It is a recurrence, so it is the operator
of one token, one token after another: `torch.ops.higher_order.scan` of the module's own loop at one
token. Which tensors are over time is read off their shapes: their second size is the open length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch._higher_order_ops.scan import scan_op
from torch.fx import Node

Decomposition = Callable[..., Any]
Replaced = Callable[[ModuleType, torch.fx.Graph], dict[Any, Decomposition]]
"""Takes a module and a traced graph to what takes the place of each operator of the module."""


class NoProgram(Exception):
    """A layer is no program of the kind asked for; the text says why, as a clause."""


@dataclass(frozen=True)
class Places:
    """Where the arguments of an operator stand.

    Attributes:
        timed: places of tensors over time, `[B, L, ...]`.
        fixed: places of tensors that all tokens share.
        states: places of the states before the first token, in the order of those after the last.
    """

    timed: tuple[int, ...]
    fixed: tuple[int, ...]
    states: tuple[int, ...]


def decompositions(module: ModuleType, graph: torch.fx.Graph) -> dict[Any, Decomposition]:
    """Returns what takes the place of each operator of a module that a graph calls.

    Args:
        module: the emitted module.
        graph: calls operators of the module; its nodes have the shapes of their results.

    Raises:
        NoProgram: an operator is no recurrence.
    """
    table: dict[Any, Decomposition] = {}
    for node in graph.nodes:
        if node.op == "call_function" and getattr(node.target, "namespace", "") == module.NAMESPACE:
            table[node.target] = _decomposition(module, node)
    return table


def _decomposition(module: ModuleType, node: Node) -> Decomposition:
    name = str(node.target).split(".")[1]
    if name.startswith("pairs_"):
        return _all_pairs(module, name)
    loop = getattr(module, "_" + name.replace("forward", "forward_recurrent", 1))
    values = [a.meta["val"] if isinstance(a, Node) else a for a in node.args]
    outs = node.meta["val"]
    if not any(map(_is_over_time, outs)):
        return lambda *args: tuple(x.clone() for x in loop(*_tensors(args)))
    places = _places(name, values, outs)
    return lambda *args: _scanned(loop, places, args)


def _places(name: str, values: list[Any], outs: tuple[Tensor, ...]) -> Places:
    """Reads off shapes where the arguments stand; states come after all other tensors."""
    at = [i for i, x in enumerate(values) if isinstance(x, Tensor)]
    timed = tuple(i for i in at if _is_over_time(values[i]))
    others = tuple(i for i in at if i not in timed)
    after = [x for x in outs if not _is_over_time(x)]
    cut = len(others) - len(after)
    states = others[cut:]
    if cut < 0 or any(values[i].shape != x.shape for i, x in zip(states, after, strict=True)):
        raise NoProgram(f"its operator {name} is no recurrence over tokens")
    return Places(timed, others[:cut], states)


def _is_over_time(x: Tensor) -> bool:
    """Whether a tensor is `[B, L, ...]`: the length is open, all other sizes but B are numbers."""
    return x.ndim > 1 and isinstance(x.shape[1], torch.SymInt)


def _tensors(args: tuple[Any, ...]) -> list[Any]:
    """What a loop takes of the arguments of its operator: all but options."""
    return [x for x in args if x is None or isinstance(x, Tensor)]


def _scanned(loop: Callable[..., Any], places: Places, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Runs a loop over one token at all of them, one after another."""
    count = len(places.states)

    def body(*values: Tensor) -> list[Tensor]:
        states, rows, fixed = values[:count], values[count:], values[count + len(places.timed) :]
        full = list(args)
        for at, x in zip(places.states, states, strict=True):
            full[at] = x
        for at, x in zip(places.timed, rows, strict=False):
            full[at] = x.unsqueeze(1)
        for at, x in zip(places.fixed, fixed, strict=False):
            full[at] = x
        outs = loop(*_tensors(tuple(full)))
        reads, after = outs[:-count], outs[-count:]
        # What a loop over tokens returns shares no memory with what it takes.
        return [*map(laid_out, after), *(x.squeeze(1).clone() for x in reads)]

    states = [laid_out(args[at]) for at in places.states]
    rows = [args[at].movedim(1, 0) for at in places.timed]
    fixed = tuple(args[at] for at in places.fixed)
    # Inductor's loop allocates its results by sizes that it was handed, so the open ones are too.
    outs = scan_op(body, states, rows, (*fixed, *_open_sizes((*states, *rows, *fixed))))
    return *(x.movedim(0, 1) for x in outs[count:]), *outs[:count]


def laid_out(x: Tensor) -> Tensor:
    """A copy in row-major layout: a loop over tokens takes and gives its states in one layout."""
    return x.clone(memory_format=torch.contiguous_format)


def _open_sizes(tensors: tuple[Tensor, ...]) -> list[torch.SymInt]:
    """The open sizes of tensors, each once."""
    sizes: list[Any] = [n for x in tensors for n in x.shape]
    return list({str(n): n for n in sizes if isinstance(n, torch.SymInt)}.values())


def _all_pairs(module: ModuleType, name: str) -> Decomposition:
    """The sum over all pairs of tokens at once: no loop, memory for every pair."""
    run = getattr(module, "_SUM" + name.removeprefix("pairs_forward").upper())

    def total(*values: Any) -> Tensor:  # noqa: ANN401 - tensors, then numbers
        seen, lengths, *tensors, length, _ = values
        args, counts = run.tile(slice(None), length, seen, lengths, tensors)
        (x,) = run.summand(*args)
        summed: Tensor = module._where(counts, x).sum(2)
        return summed

    return total
