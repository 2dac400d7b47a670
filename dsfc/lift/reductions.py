"""Operations that sum: products of matrices, means and norms, softmax and attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from dsfc.lift.axes import Axis, Batch, Layout, Time, axes_of, resolved
from dsfc.lift.build import inverse_root, op, summed, swapped
from dsfc.lift.failure import CannotLift
from dsfc.lift.ir import Along, Apply, Contract, Masked, Node, Op, Param, Past, Reduce
from dsfc.lift.ir import axes as axes_below
from dsfc.lift.values import Value, at_token, filled, time_of

if TYPE_CHECKING:
    from dsfc.lift.recognise import Recogniser


def einsum(r: Recogniser, equation: str, operands: Sequence[Any], **options: Any) -> Value:
    """`torch.einsum`: products of two after another, each letter summed when it is last seen."""
    values = [r.whole(v) for v in operands]
    left, _, out = equation.replace(" ", "").partition("->")
    letters = [
        _spelled(word, len(v.layout)) for word, v in zip(left.split(","), values, strict=True)
    ]
    if "->" in equation.replace(" ", ""):
        dots = next((w[: _dots(w)] for w in letters if _dots(w)), "")
        result = out.replace("...", dots)
    else:
        seen = "".join(letters)
        result = "".join(sorted(c for c in dict.fromkeys(seen) if seen.count(c) == 1))
    value, word = values[0], letters[0]
    if len(values) == 1:
        return _single(r, value, word, result)
    for k in range(1, len(values)):
        later = set(result).union(*letters[k + 1 :])
        kept = "".join(c for c in dict.fromkeys(word + letters[k]) if c in later)
        if k == len(values) - 1:
            kept = result
        value, word = product(r, value, word, values[k], letters[k], kept), kept
    return value


def _spelled(word: str, rank: int) -> str:
    """The letters of an operand; digits stand for the dimensions of an ellipsis."""
    if "..." not in word:
        return word
    missing = rank - len(word) + 3
    digits = "".join(chr(0x100 + 50 - missing + k) for k in range(missing))
    return word.replace("...", digits)


def _dots(word: str) -> int:
    return sum(ord(c) > 0xFF for c in word)


def _single(r: Recogniser, value: Value, word: str, result: str) -> Value:
    if len(set(word)) < len(word):
        raise CannotLift("the diagonal of a tensor")
    gone = [at for at, c in enumerate(word) if c not in result]
    value = reduce_(r, "sum", value, gone, False) if gone else value
    rest = [c for c in word if c in result]
    return Value(value.node, tuple(value.layout[rest.index(c)] for c in result))


def product(r: Recogniser, a: Value, la: str, b: Value, lb: str, out: str) -> Value:
    """Returns the sum over all letters that `out` leaves out of the product of two tensors."""
    if len(set(la)) < len(la) or len(set(lb)) < len(lb):
        raise CannotLift("the diagonal of a tensor")
    for value, word, other in ((a, la, lb), (b, lb, la)):
        alone = [at for at, c in enumerate(word) if c not in other and c not in out]
        if alone:
            value = reduce_(r, "sum", value, alone, False)
            word = "".join(c for c in word if c in other or c in out)
            return (
                product(r, value, word, b, lb, out)
                if other == lb
                else product(r, a, la, value, word, out)
            )
    gone = [c for c in dict.fromkeys(la + lb) if c not in out]
    mapped = _mapped(r, a, la, b, lb, out, gone) or _mapped(r, b, lb, a, la, out, gone)
    if mapped is not None:
        return mapped
    word = out + "".join(gone)
    wide = [
        Value(v.node, tuple(v.layout[w.index(c)] if c in w else () for c in word))
        for v, w in ((a, la), (b, lb))
    ]
    (left, right), layout = r.broadcast.together(wide)
    entries = [layout[len(out) + k] for k in range(len(gone))]
    times = [t for e in entries if (t := time_of(e))]
    over = axes_of(f for e in entries for f in e)
    if any(isinstance(f, Batch) for e in entries for f in e):
        raise CannotLift("a sum over the batch")
    node = _contracted(left, right, over) if over else op("*", left, right)
    return _over_tokens(node, layout[: len(out)], times)


def _contracted(left: Node, right: Node, over: tuple[Axis, ...]) -> Node:
    """A contraction; a mask of pairs goes to its outside."""
    for one, other, first in ((left, right, True), (right, left, False)):
        if isinstance(one, Masked) and one.fill == 0.0:
            inner = (
                _contracted(one.arg, other, over) if first else _contracted(other, one.arg, over)
            )
            return Masked(inner, one.relation, 0.0)
    in_both = [a for a in over if a in axes_below(left, {}) and a in axes_below(right, {})]
    if len(in_both) == len(over):
        return Contract(left, right, over)
    return Reduce("sum", over, filled(op("*", left, right), over))


def _over_tokens(node: Node, layout: Layout, times: Sequence[Time]) -> Value:
    """Sums a value of pairs over one of its tokens."""
    if not times:
        return Value(node, layout)
    left = [f for e in layout for f in e if isinstance(f, Time)]
    if len(times) > 1 or not left:
        hint = (
            "a mixer's value at a token may sum over the tokens beside it, each weighed by a pair"
        )
        raise CannotLift("a sum over all tokens that leaves one value for the sequence", hint=hint)
    if times[0].variable == 0:
        node = swapped(node)
    renumbered = tuple(
        tuple(Time(f.size, 0, f.delay) if isinstance(f, Time) else f for f in e) for e in layout
    )
    return Value(summed(node), renumbered)


def _mapped(
    r: Recogniser, w: Value, lw: str, x: Value, lx: str, out: str, gone: list[str]
) -> Value | None:
    """A parameter applied as a linear map, None where the first tensor is none."""
    if not isinstance(w.node, Param) or not gone:
        return None
    if not all(c in lw and c in lx for c in gone) or not (x.times or _has_batch(x)):
        return None
    if isinstance(x.node, Param) and not _has_batch(x):
        return None
    node = x.node
    for c in (c for c in lw if c in lx):
        node = r.broadcast._paired(node, w.layout[lw.index(c)], x.layout[lx.index(c)])
    if any(isinstance(f, Time) for c in gone for f in resolved(x.layout[lx.index(c)])):
        return None
    source = axes_of(f for c in gone for f in x.layout[lx.index(c)])
    each = axes_of(f for c in lw if c in lx and c in out for f in w.layout[lw.index(c)])
    target = axes_of(f for c in lw if c not in lx for f in w.layout[lw.index(c)])
    if not source:
        return None
    kept = axes_of(f for c in lx if c not in gone for f in x.layout[lx.index(c)])
    if set(target) & set(kept):
        return None
    layout = tuple(w.layout[lw.index(c)] if c in lw else x.layout[lx.index(c)] for c in out)
    return Value(Apply(w.node, filled(node, source), source, target, each), layout)


def _has_batch(value: Value) -> bool:
    return any(isinstance(f, Batch) for e in value.layout for f in e)


def linear(r: Recogniser, x: Value, weight: Value, bias: Value | None = None) -> Value:
    """`F.linear`."""
    x, weight = r.whole(x), r.whole(weight)
    letters = "abcdefgh"[: len(x.layout)]
    built = product(r, x, letters, weight, "z" + letters[-1], letters[:-1] + "z")
    return built if bias is None else r.elementwise("+", built, bias)


def matmul(r: Recogniser, a: Value, b: Value) -> Value:
    """`@`, with broadcast dimensions of batches."""
    a, b = r.whole(a), r.whole(b)
    la = "k" if len(a.layout) == 1 else "abcdefgh"[-(len(a.layout) - 2) or 8 :] + "mk"
    lb = "k" if len(b.layout) == 1 else "abcdefgh"[-(len(b.layout) - 2) or 8 :] + "kn"
    batches = max(la[:-2], lb[:-2], key=len) if len(la) > 1 or len(lb) > 1 else ""
    out = batches + ("m" if "m" in la else "") + ("n" if "n" in lb else "")
    return product(r, a, la, b, lb, out)


def addmm(r: Recogniser, c: Value, a: Value, b: Value) -> Value:
    """`c + a @ b`."""
    return r.elementwise("+", c, matmul(r, a, b))


def outer(r: Recogniser, a: Value, b: Value) -> Value:
    """The outer product of two vectors."""
    return product(r, r.whole(a), "m", r.whole(b), "n", "mn")


def dims_of(dim: Any, rank: int) -> list[int]:
    """Returns the dimensions that an argument names, counted from the front; all for None."""
    if dim is None or dim == []:
        return list(range(rank))
    return sorted(d % rank for d in (dim if isinstance(dim, list | tuple) else [dim]))


def reduce_(r: Recogniser, kind: str, x: Value, dims: list[int], keep: bool) -> Value:
    """Returns the sum, mean or maximum over dimensions."""
    x = r.whole(x)
    entries = [resolved(x.layout[d]) for d in dims]
    if any(isinstance(f, Batch) for e in entries for f in e):
        raise CannotLift(f"a {kind} over the batch")
    times = [t for e in entries if (t := time_of(e))]
    if times and kind != "sum":
        hint = "divide a cumulative sum by the number of tokens"
        raise CannotLift(f"a {kind} over tokens", hint=hint)
    over = axes_of(f for e in entries for f in e)
    node = x.node
    if over:
        node = _reduced(kind, over, node)
    rest = tuple(() if at in dims else e for at, e in enumerate(x.layout))
    if not keep:
        rest = tuple(e for at, e in enumerate(rest) if at not in dims)
    return _over_tokens(node, rest, times)


def _reduced(kind: str, over: tuple[Axis, ...], node: Node) -> Node:
    if isinstance(node, Masked) and node.fill == 0.0 and kind != "max":
        return Masked(_reduced(kind, over, node.arg), node.relation, 0.0)
    if kind == "sum" and isinstance(node, Op) and node.name == "*":
        left, right = node.args
        shared = set(axes_below(left, {})) & set(axes_below(right, {}))
        if left is not right and set(over) <= shared:
            return Contract(left, right, over)
    return Reduce(kind, over, filled(node, over))


def _reduction(kind: str) -> Any:
    def run(
        r: Recogniser, x: Value, dim: Any = None, keepdim: bool = False, **options: Any
    ) -> Value:
        x = r.whole(x)
        return reduce_(r, kind, x, dims_of(dim, len(x.layout)), keepdim)

    return run


def _max_dim(r: Recogniser, x: Value, dim: Any = None, keepdim: bool = False) -> Any:
    if isinstance(dim, Value):
        return r.elementwise("max", x, dim)
    built = _reduction("max")(r, x, dim, keepdim)
    return (
        [built, None]
        if isinstance(dim, int) and not isinstance(r.now.meta["val"], torch.Tensor)
        else built
    )


def _var(
    r: Recogniser,
    x: Value,
    dim: Any = None,
    unbiased: Any = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Value:
    x = r.whole(x)
    dims = dims_of(dim, len(x.layout))
    count = math.prod(f.size for d in dims for f in resolved(x.layout[d]))
    less = (1 if unbiased else 0) if correction is None else correction
    centred = r.elementwise("-", x, reduce_(r, "mean", x, dims, True))
    mean = reduce_(r, "mean", r.elementwise("*", centred, centred), dims, keepdim)
    return mean if less == 0 else r.elementwise("*", mean, count / (count - less))


def _std(r: Recogniser, *args: Any, **kwargs: Any) -> Value:
    return r.unary("sqrt", _var(r, *args, **kwargs))


def _norm(
    r: Recogniser, x: Value, p: Any = 2, dim: Any = None, keepdim: bool = False, **options: Any
) -> Value:
    if p not in (2, 2.0, None, 1, 1.0):
        raise CannotLift(f"a norm of order {p}")
    x = r.whole(x)
    dims = dims_of(dim, len(x.layout))
    if p in (1, 1.0):
        return reduce_(r, "sum", r.unary("abs", x), dims, keepdim)
    return r.unary("sqrt", reduce_(r, "sum", r.elementwise("*", x, x), dims, keepdim))


def _normalize(r: Recogniser, x: Value, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Value:
    length = _norm(r, x, p, dim, True)
    return r.elementwise("/", x, r.elementwise("max", length, eps))


def layer_norm(
    r: Recogniser,
    x: Value,
    shape: list[int],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    *rest: Any,
) -> Value:
    """`F.layer_norm`."""
    x = r.whole(x)
    dims = list(range(len(x.layout) - len(shape), len(x.layout)))
    centred = r.elementwise("-", x, reduce_(r, "mean", x, dims, True))
    spread = reduce_(r, "mean", r.elementwise("*", centred, centred), dims, True)
    built = r.elementwise("/", centred, r.unary("sqrt", r.elementwise("+", spread, eps)))
    built = built if weight is None else r.elementwise("*", built, weight)
    return built if bias is None else r.elementwise("+", built, bias)


def rms_norm(
    r: Recogniser, x: Value, shape: list[int], weight: Value | None = None, eps: float | None = None
) -> Value:
    """`F.rms_norm`."""
    x = r.whole(x)
    dims = list(range(len(x.layout) - len(shape), len(x.layout)))
    square = reduce_(r, "mean", r.elementwise("*", x, x), dims, True)
    eps = 2.220446049250313e-16 if eps is None else eps
    built = r.elementwise("/", x, r.unary("sqrt", r.elementwise("+", square, eps)))
    return built if weight is None else r.elementwise("*", built, weight)


def group_norm(
    r: Recogniser,
    x: Value,
    groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    *rest: Any,
) -> Value:
    """`F.group_norm` of a tensor whose second dimension is the last: each token has its own."""
    x = r.whole(x)
    if len(x.layout) != 2:
        raise CannotLift("group_norm over tokens", hint="apply it to x.flatten(0, 1)")
    width = r.shape[1]
    split = r.viewed(x, (r.shape[0], groups, width // groups))
    centred = r.elementwise("-", split, reduce_(r, "mean", split, [2], True))
    spread = reduce_(r, "mean", r.elementwise("*", centred, centred), [2], True)
    built = r.elementwise("/", centred, r.unary("sqrt", r.elementwise("+", spread, eps)))
    built = r.viewed(built, r.shape)
    built = built if weight is None else r.elementwise("*", built, weight)
    return built if bias is None else r.elementwise("+", built, bias)


def softmax(r: Recogniser, x: Value, dim: int, *rest: Any, **options: Any) -> Value:
    """Softmax along an axis, or over the tokens of a pair."""
    x = r.whole(x)
    _, entry = r.entry(x, dim)
    time = time_of(entry)
    if time is None:
        over = axes_of(entry)
        if len(over) != 1:
            raise CannotLift("a softmax along what is not one axis")
        return Value(Along("softmax", over, filled(x.node, over)), x.layout)
    if len(x.times) != 2:
        hint = "a softmax over tokens takes scores of pairs of tokens"
        raise CannotLift("a softmax over all tokens of a sequence", hint=hint)
    node = x.node if time.variable == 1 else swapped(x.node)
    relation = None
    if isinstance(node, Masked):
        if node.fill == 0.0:
            raise CannotLift("a softmax of scores that are masked with 0", hint="mask with -inf")
        relation, node = node.relation, node.arg
    weight = op("exp", node)
    total = Past(weight, relation)
    built: Node = op("/", weight, at_token(total, 0))
    if relation is not None:
        built = Masked(built, relation, 0.0)
    return Value(built if time.variable == 1 else swapped(built), x.layout)


def _log_softmax(r: Recogniser, x: Value, dim: int, *rest: Any) -> Value:
    return r.unary("log", softmax(r, x, dim))


def _logsumexp(r: Recogniser, x: Value, dim: Any, keepdim: bool = False) -> Value:
    x = r.whole(x)
    return r.unary(
        "log", reduce_(r, "sum", r.unary("exp", x), dims_of(dim, len(x.layout)), keepdim)
    )


def attention(
    r: Recogniser,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    dropout: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """`F.scaled_dot_product_attention`."""
    if dropout or enable_gqa:
        raise CannotLift("attention with dropout or groups of queries")
    q, k, v = r.whole(q), r.whole(k), r.whole(v)
    letters = "abcdefgh"[: len(q.layout) - 2]
    width = math.prod(f.size for f in resolved(q.layout[-1]))
    scores = product(r, q, letters + "mk", k, letters + "nk", letters + "mn")
    root = Value(inverse_root(axes_of(q.layout[-1]), width), ())
    scores = r.elementwise("*", scores, root if scale is None else scale)
    if is_causal:
        scores = Value(Masked(scores.node, "le", -math.inf), scores.layout)
    elif mask is not None:
        boolean = mask.const is not None and not mask.const.is_floating_point()
        if boolean:
            scores = r.operations["where"](r, mask, scores, -math.inf)
        else:
            scores = r.elementwise("+", scores, mask)
    weights = softmax(r, scores, -1)
    return product(r, weights, letters + "mn", v, letters + "nk", letters + "mk")


OPERATIONS: dict[str, Any] = {
    "einsum": einsum, "linear": linear, "matmul": matmul, "mm": matmul, "bmm": matmul, "mv": matmul,
    "dot": matmul, "inner": matmul, "addmm": addmm, "baddbmm": addmm, "outer": outer,
    "sum": _reduction("sum"), "mean": _reduction("mean"), "amax": _reduction("max"),
    "max": _max_dim, "var": _var, "std": _std, "linalg_vector_norm": _norm, "norm": _norm,
    "linalg_norm": _norm, "normalize": _normalize, "layer_norm": layer_norm, "rms_norm": rms_norm,
    "group_norm": group_norm, "softmax": softmax, "_softmax": softmax, "log_softmax": _log_softmax,
    "logsumexp": _logsumexp, "scaled_dot_product_attention": attention,
}  # fmt: skip
