"""Messages about names that nothing defines: the name that was meant, or how to declare it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from dsfc.diagnostics.catalogue import UnknownName
from dsfc.diagnostics.report import nearest
from dsfc.expr.distributions import DISTRIBUTIONS
from dsfc.expr.table import SPELLINGS
from dsfc.mixer.reserved_names import FORMS
from dsfc.mixer.shapes import Operand
from dsfc.syntax import ast

if TYPE_CHECKING:
    from dsfc.mixer.context import Context
    from dsfc.mixer.scope import Scope
    from dsfc.source import Span

_SURE = 0.8
"""Likeness from which on another name is taken for a misspelling and nothing else."""
_SHORT = 3
"""Names of so many letters are near to too many others."""
_INPUTS = ("u", "x", "input", "inputs")
_NOW, _BEFORE = ("i", "t"), ("prev", "old", "last", "tm1", "t1")
_TRANSPOSED = "axes have names, so nothing is transposed: write `q · k` or `k ⊗ v`"
_BARE = "functions stand alone: write `exp(x)`, not `torch.exp(x)`"
_DRAWN = "a first value is a number, `= 0`, or a draw, `~ normal(0, 0.02)`"
_WINDOW = "a sum over the tokens so far is `sum[j ≤ i](x[j])`"
_LENGTH = "`l2norm[n](x)` is x over its length, and the length is `sqrt(sum[n](x^2))`"
_COUNTED = "0, 1, 2, … along an axis is `iota[n]`"
_NORMS = "there are `rmsnorm[n](x)` and `l2norm[n](x)`"
_NO_MATRIX = "a diagonal matrix is an elementwise product, `a * S[i-1]`"
_PARTS = "values are not joined; write a map of each, `W u + V x`"

_ALIASES = {
    "sigma": "sigmoid", "swish": "silu", "maximum": "max", "minimum": "min", "ln": "log",
    "normalize": "l2norm", "rms_norm": "rmsnorm", "real": "Re", "imag": "Im", "conjugate": "conj",
}  # fmt: skip
_PRODUCTS = {
    "outer": "⊗", "kron": "⊗", "matmul": "·", "dot": "·", "inner": "·", "mm": "·", "bmm": "·",
    "mul": "*", "multiply": "*", "hadamard": "*",
}  # fmt: skip
_MEANT = {
    **dict.fromkeys(("torch", "np", "numpy", "jnp", "jax", "nn", "F", "tf", "math"), _BARE),
    **dict.fromkeys(("T", "transpose", "permute", "mT", "tr"), _TRANSPOSED),
    **dict.fromkeys(("zeros", "zeros_like", "ones_like", "full", "empty"), _DRAWN),
    **dict.fromkeys(("cumsum", "scan", "accumulate"), _WINDOW),
    **dict.fromkeys(("layernorm", "layer_norm", "LayerNorm", "groupnorm", "group_norm"), _NORMS),
    **dict.fromkeys(("norm", "length"), _LENGTH),
    **dict.fromkeys(("arange", "linspace", "range", "indices"), _COUNTED),
    **dict.fromkeys(("diag", "diagonal", "I", "eye", "Id"), _NO_MATRIX),
    **dict.fromkeys(("cat", "concat", "concatenate", "stack"), _PARTS),
    **dict.fromkeys(("Linear", "linear", "Dense"), "a map is declared, `param W : d -> n`"),
    **dict.fromkeys(("clamp", "clip", "where"), "there are `max(a, b)`, `min(a, b)`, `relu(x)`"),
    **dict.fromkeys(
        ("conv1d", "conv", "convolve"),
        "a convolution is `fir[K](w, u)` along an axis K, or `sum[j ≤ i](K(i - j) * u[j])`",
    ),
    **dict.fromkeys(("eps", "epsilon"), "write a number, such as `1e-6`"),
    "if": "there is no `if`; `first` is 1 at the first token: `first * a + (1 - first) * b`",
    "einsum": "a product says its axes: `q · S`, `k ⊗ v`, or `sum[n](q * S)`",
    "dropout": "a mixer draws nothing while it runs; apply dropout around the module",
    "e": "the exponential is `exp(x)`",
    "t": "the present token is `i`",
    "j": "an earlier token has its name inside `sum[j ≤ i](…)` only",
}


def unknown_value(scope: Scope, ctx: Context, name: str, span: Span) -> UnknownName:
    """Returns the complaint about a name that stands for a value."""
    written = span.text or name
    if name in _MEANT:
        return UnknownName(span, name=written, instead=f"; {_MEANT[name]}")
    if _is_called(scope, ctx.owner):
        owner = scope.program.updates[ctx.owner].name.span.text
        way = f"; if `{owner}` is a function, write `{owner}({written}) = …`"
        return UnknownName(span, name=written, instead=way)
    meant = _subscript(scope, ctx, name) or _input(scope, name)
    if meant is not None:
        return UnknownName(span, name=written, nearest=meant)
    close = _nearest(name, scope.values())
    if _sure(name, close):
        return UnknownName(span, name=written, nearest=close)
    way = f"; declare it, `param {written} : …`, or define it, `{written} = …`"
    if name in _INPUTS and not scope.inputs:
        way = f"; declare it: `input {written} : …`"
    return UnknownName(span, name=written, instead=way, nearest=close)


def unknown_map(scope: Scope, name: str, span: Span, arg: Operand | None) -> UnknownName:
    """Returns the complaint about a name that stands before an argument."""
    written = span.text or name
    if name in _MEANT:
        return UnknownName(span, name=written, instead=f"; {_MEANT[name]}")
    close = _ALIASES.get(name) or _nearest(name, (*scope.applied(), *SPELLINGS))
    if name in _ALIASES or _sure(name, close):
        return UnknownName(span, name=written, nearest=close)
    axes = () if arg is None else tuple(arg.axes)
    source = axes[0].name if len(axes) == 1 else "…"
    way = f"; declare the map: `param {written} : {source} -> …`"
    return UnknownName(span, name=written, instead=way, nearest=close)


def unknown_call(
    scope: Scope, ctx: Context, node: ast.Call, args: tuple[Operand | None, ...]
) -> UnknownName:
    """Returns the complaint about a function that is not there."""
    name, span = node.name.text, node.name.span
    if ctx.draws is not None and name not in _MEANT:
        close = nearest(name, (*DISTRIBUTIONS, *SPELLINGS))
        draws = "; draws are " + ", ".join(f"`{distribution}`" for distribution in DISTRIBUTIONS)
        return UnknownName(span, name=name, nearest=close, instead="" if close else draws)
    if name in _PRODUCTS and len(node.args) == 2:
        product = f" {_PRODUCTS[name]} ".join(map(_factor, node.args))
        return UnknownName(node.span, name=name, nearest=f"({product})")
    if name in _PRODUCTS:
        way = f"; a product is written `a {_PRODUCTS[name]} b`"
        return UnknownName(span, name=name, instead=way)
    if name in _MEANT:
        return UnknownName(span, name=name, instead=f"; {_MEANT[name]}")
    head, _, index = name.rpartition("_")
    if index in _NOW and head in scope.program.functions:
        return UnknownName(span, name=name, nearest=head)
    known = (*scope.callables(), *FORMS, *SPELLINGS)
    close = _ALIASES.get(name) or _nearest(name, known)
    sure = name in _ALIASES or _sure(name, close)
    if close == "l2norm" and not node.brackets and args and args[0] is not None:
        along = [axis.name for axis in args[0].axes if not axis.heads]
        close = f"l2norm[{along[0]}]" if len(along) == 1 else close
    if sure:
        return UnknownName(span, name=name, nearest=close)
    return UnknownName(span, name=name, instead=f"; define it, `{span.text}(x) = …`", nearest=close)


def _sure(name: str, close: str | None) -> bool:
    return close is not None and (
        _letters(name) == _letters(close)
        or (len(name) > _SHORT and SequenceMatcher(None, name, close).ratio() >= _SURE)
    )


def _nearest(name: str, known: Iterable[str]) -> str | None:
    """The name closest to another; of a short one only what differs in case or underscores."""
    names = tuple(known)
    if len(name) > _SHORT:
        return nearest(name, names)
    return next((n for n in names if n != name and _letters(n) == _letters(name)), None)


def _letters(name: str) -> str:
    """A name without what is easily mistaken: case, underscores, a letter typed twice."""
    return re.sub(r"(.)\1+", r"\1", name.casefold().replace("_", ""))


def _subscript(scope: Scope, ctx: Context, name: str) -> str | None:
    """What `S_prev`, `u_i` or `k_j` means where S, u and k are there."""
    known = set(scope.values())
    head, _, index = name.rpartition("_")
    if head in known:
        if index in _NOW:
            return head
        if index in _BEFORE:
            return f"{head}[i-1]"
        return f"{head}[{index}]" if index in ctx.clock.vars else None
    return next((f"{name}_{now}" for now in _NOW if f"{name}_{now}" in known), None)


def _input(scope: Scope, name: str) -> str | None:
    """The only input, if the name is one that inputs usually have."""
    kinds = scope.program.declared
    inputs = [n for n, declared in kinds.items() if declared.kind is ast.DeclKind.INPUT]
    return inputs[0] if name in _INPUTS and len(inputs) == 1 else None


def _is_called(scope: Scope, owner: str) -> bool:
    """Whether a definition is used like a function."""
    if not scope.is_definition(owner):
        return False
    updates = scope.program.updates.values()
    values = (item.expr if isinstance(item, ast.Def) else item.drift for item in updates)
    parts = (part for value in values for part in ast.walk(value))
    return any(isinstance(part, ast.Call) and part.name.text == owner for part in parts)


def _factor(node: ast.Expr) -> str:
    text = " ".join(node.span.text.split())
    alone = isinstance(node, ast.Name | ast.Index | ast.Call | ast.Num | ast.Apply)
    return text if alone else f"({text})"
