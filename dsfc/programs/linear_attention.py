"""ONNX's operator LinearAttention in the place of a recurrence, and the rules that it has.

Each rule is the text of a recurrence of values of a token, written by hand from the page of the
operator (ONNX, operator set 27), with the scale 1. Nothing here says that a module computes a rule:
a caller proves that of the recurrence that `Call.recurrence` is, for all values of its arguments,
and only then has it written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Node

from dsfc.programs.program import named_function
from dsfc.programs.token_loop import NoProgram

OPERATOR, DOMAIN, OPSET = "LinearAttention", "dsfc.placeholder", 27
"""The operator, the domain that it has until the file is brought to its operator set, and that."""

SIZES = {"h": 2, "n": 3, "p": 5}
"""Sizes of heads, keys and values at which a recurrence is traced, each another number."""


@dataclass(frozen=True)
class Rule:
    """An update rule of the operator.

    Attributes:
        name: the value of the attribute `update_rule`.
        takes: what it reads of a token.
        update: its recurrence, lines of a spec; S is the state.
    """

    name: str
    takes: tuple[str, ...]
    update: tuple[str, ...]


RULES = (
    Rule("linear", ("query", "key", "value"), ("S = S[i-1] + key ⊗ value",)),
    Rule(
        "delta",
        ("query", "key", "value", "beta"),
        ("S = S[i-1] + (beta * key) ⊗ (value - key · S[i-1])",),
    ),
    Rule("gated", ("query", "key", "value", "g"), ("S = exp(g) * S[i-1] + key ⊗ value",)),
    Rule(
        "gated_delta",
        ("query", "key", "value", "beta", "g"),
        ("F = exp(g) * S[i-1]", "S = F + (beta * key) ⊗ (value - key · F)"),
    ),
)
"""All update rules of the operator; g is the logarithm of the decay, which it calls `decay`."""

READ = "y = query · S"
"""The equation of the operator's output, with the scale 1."""

_AXES = {
    "query": ("hn", "n"),
    "key": ("hn", "n"),
    "value": ("hp", "p"),
    "beta": ("h",),
    "g": ("hn", "h"),
}
"""Axes that a value may have here; the operator takes the first, a decay either."""


@dataclass(frozen=True)
class Call:
    """A call of a recurrence in a traced layer, as it may be a rule of the operator.

    Attributes:
        rule: the rule.
        axes: of each value that the rule takes, letters of `SIZES`.
        loop: the module's loop over tokens.
        node: the call.
        takes: the nodes of these values.
    """

    rule: Rule
    axes: dict[str, str]
    loop: Callable[..., Any]
    node: Node
    takes: tuple[Node, ...]

    def recurrence(self, states: bool) -> tuple[nn.Module, dict[str, tuple[object, ...]]]:
        """Returns the module's recurrence from zero, of what the rule takes, and its arguments.

        Args:
            states: whether it gives the state `[B, T, h, n, p]` after each token; else what is
                read, `[B, T, h, p]`.
        """
        shapes = {name: ("B", "T", *(SIZES[a] for a in axes)) for name, axes in self.axes.items()}
        return _Recurrence(self, states), shapes


class _Recurrence(nn.Module):
    """The loop of a module, token by token, the state handed on as a program does."""

    def __init__(self, call: Call, states: bool) -> None:
        super().__init__()
        self._call, self._states = call, states
        self.forward = named_function(tuple(call.axes), self._run)

    def _run(self, value: dict[str, Tensor]) -> Tensor:
        if "beta" in value:  # the module's loop takes them multiplied
            beta = value["beta"]
            value |= {"value": beta[..., None] * value["value"], "beta": -beta}
        first = value["value"]
        state = first.new_zeros(first.shape[0], *SIZES.values())
        rows = []
        for i in range(first.shape[1]):
            read, state = self._call.loop(*(x[:, i : i + 1] for x in value.values()), state)
            rows.append(state if self._states else read[:, 0])
        return torch.stack(rows, 1)


def calls(module: ModuleType, graph: torch.fx.Graph) -> tuple[tuple[Call, ...], ...]:
    """Returns of each recurrence that a traced layer calls the rules that it may be.

    Shapes and the products in the graph say which; they prove nothing.

    Args:
        module: the emitted module.
        graph: calls operators of the module.

    Raises:
        NoProgram: there is no recurrence, or one that no rule has the arguments of.
    """
    calling = (n for n in graph.nodes if n.op == "call_function")
    of_module = [n for n in calling if getattr(n.target, "namespace", "") == module.NAMESPACE]
    if not of_module:
        raise NoProgram(f"it has no recurrence that {OPERATOR} could be")
    if len({node.target for node in of_module}) < len(of_module):
        raise NoProgram("it calls one recurrence at two places")
    return tuple(_candidates(module, node) for node in of_module)


def _candidates(module: ModuleType, node: Node) -> tuple[Call, ...]:
    name = str(node.target).split(".")[1]
    if not name.startswith("forward"):
        raise NoProgram(f"it sums over pairs of tokens, which is no update rule of {OPERATOR}")
    loop = getattr(module, "_" + name.replace("forward", "forward_recurrent", 1))
    nodes = [a for a in node.args if isinstance(a, Node)]
    *timed, state = nodes
    shape = state.meta["val"].shape
    if len(node.meta["val"]) != 2 or len(shape) != 4:
        raise NoProgram(
            f"its recurrence {name} has other states than {OPERATOR}, "
            "whose state has heads, keys and values"
        )
    sizes = dict(zip(SIZES, shape[1:], strict=True))
    known = tuple(
        call for rule in RULES if (call := _as_rule(rule, loop, node, timed, sizes)) is not None
    )
    if not known:
        nearest = min(RULES, key=lambda r: (abs(len(r.takes) - len(timed)), -len(r.takes)))
        raise NoProgram(
            f"its recurrence is no update rule of {OPERATOR}: it takes {len(timed)} values of a "
            f"token, and the nearest, {nearest.name}, takes {', '.join(nearest.takes)}, "
            "a decay of a head or of a key"
        )
    return known


def _as_rule(
    rule: Rule, loop: Callable[..., Any], node: Node, timed: list[Node], sizes: dict[str, Any]
) -> Call | None:
    """A call as one of a rule, if its arguments have the shapes that the rule's may have."""
    if len(timed) != len(rule.takes):
        return None
    at = dict(zip(rule.takes, timed, strict=True))
    if "beta" in at:
        strength = _strength(at["value"], at["beta"])
        if strength is None:
            return None
        at |= strength
    axes = {}
    for name, x in at.items():
        shape = tuple(x.meta["val"].shape[2:])
        fits = [a for a in _AXES[name] if tuple(sizes[i] for i in a) == shape]
        if not fits:
            return None
        axes[name] = fits[0]
    return Call(rule, axes, loop, node, tuple(at.values()))


def _strength(value: Node, negative: Node) -> dict[str, Node] | None:
    """The value and strength of a delta rule, of `beta[..., None] * v` and `-beta`.

    Both are products of the same node of the graph, so that no division is needed.
    """
    aten = torch.ops.aten
    if value.target is not aten.mul.Tensor or negative.target is not aten.neg.default:
        return None
    (beta,) = negative.args
    last = negative.meta["val"].ndim
    for spread, own in (value.args, value.args[::-1]):
        if not isinstance(spread, Node) or not isinstance(own, Node):
            continue
        if spread.target is not aten.unsqueeze.default or spread.args[0] is not beta:
            continue
        same = own.meta["val"].shape == value.meta["val"].shape
        if same and spread.args[1] in (-1, last) and isinstance(beta, Node):
            return {"value": own, "beta": beta}
    return None


def written(call: Call) -> Callable[..., Any]:
    """Hands a call the values that its rule takes, and returns what computes it by the operator.

    Args:
        call: what was proved to be its rule; its node is changed.

    Raises:
        NoProgram: the layer computes in another dtype than float32.
    """
    kinds = {x.meta["val"].dtype for x in call.takes}
    if kinds != {torch.float32}:
        known = ", ".join(sorted(str(x).removeprefix("torch.") for x in kinds))
        raise NoProgram(f"{OPERATOR} is written in float32, and the layer computes in {known}")
    options = [a for a in call.node.args if not isinstance(a, Node)]
    (state,) = [a for a in call.node.args if isinstance(a, Node)][-1:]
    call.node.args = (*call.takes, state, *options)

    def run(*args: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401 - tensors, then options
        at = dict(zip(call.axes, args, strict=False))
        state = args[len(at)]
        batch, heads, _, width = state.shape
        length = at["value"].shape[1]
        packed = {name: _packed(x, call.axes[name], heads) for name, x in at.items()}
        values = [packed.get(x) for x in ("query", "key", "value")]
        out, after = torch.onnx.ops.symbolic_multi_out(
            f"{DOMAIN}::{OPERATOR}",
            [*values, state, packed.get("g"), packed.get("beta")],
            attrs={
                "q_num_heads": heads,
                "kv_num_heads": heads,
                "scale": 1.0,
                "update_rule": call.rule.name,
            },
            dtypes=[state.dtype, state.dtype],
            shapes=[[batch, length, heads * width], list(state.shape)],
            version=1,
        )
        return out.unflatten(2, (heads, width)), after

    return run


def _packed(x: Tensor, axes: str, heads: int) -> Tensor:
    """A value `[B, L, heads * …]`; what heads share is given to each of them."""
    if "h" not in axes:
        x = x.unsqueeze(2).expand(-1, -1, heads, -1)
    return x.flatten(2)
