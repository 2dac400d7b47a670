"""PyTorch's operators and their rules, by name; what writes in place has the rule of what does not.

A rule takes the interpreter, the operator and its arguments, and returns the result.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from dsfc.rounding import arithmetic, attention, discs, functions, products
from dsfc.rounding.enclosure import Enclosure, UnknownError, computed, each, exact, scalar
from dsfc.rounding.moves import ALIASES, COPIES, PARTED
from dsfc.rounding.units import least, unit

if TYPE_CHECKING:
    from dsfc.rounding.interpret import Interpreter

Rule = Callable[..., Any]
Args = tuple[Any, ...]
Options = dict[str, Any]
RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def kept(rule: Rule) -> Rule:
        for name in names:
            RULES[name] = rule
        return rule

    return kept


def _no_floats(*values: Any) -> bool:  # noqa: ANN401 - arguments of any kind
    """Whether an operator computes with whole numbers and truth values alone."""
    return not any(
        isinstance(x, Enclosure | float | complex)
        or (isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex()))
        for x in values
    )


def _dtype(*values: Any) -> torch.dtype:  # noqa: ANN401 - numbers and tensors
    """The dtype of a result: tensors with axes first, then those without, then numbers."""
    tensors = [x for x in values if isinstance(x, Tensor)]
    ranked = [x for x in tensors if x.ndim] or tensors
    out = ranked[0].dtype
    for x in ranked[1:]:
        out = torch.promote_types(out, x.dtype)
    kinds = [x.dtype for x in tensors] + [torch.complex64 for x in values if isinstance(x, complex)]
    if any(k.is_complex for k in kinds) and not out.is_complex:
        out = torch.promote_types(out, torch.complex64)
    if not (out.is_floating_point or out.is_complex):
        for k in kinds:
            out = torch.promote_types(out, k)
        if not (out.is_floating_point or out.is_complex):
            out = torch.get_default_dtype()
    return out


def known(x: Any, dtype: torch.dtype) -> Enclosure:  # noqa: ANN401 - a tensor or a number
    """Returns an operand as an enclosure."""
    if isinstance(x, Enclosure):
        return x
    if isinstance(x, Tensor):
        return exact(x)
    return scalar(x, dtype)


def _made(func: OpOverload, args: Args, kwargs: Options) -> object:
    """What an operator gives that rounds nothing."""
    return func(*args, **kwargs)


@_rule("add", "sub", "rsub")
def _add(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, y, *rest = args
    if _no_floats(x, y):
        return _made(func, args, kwargs)
    alpha = rest[0] if rest else kwargs.get("alpha", 1)
    if alpha != 1:
        raise UnknownError("no rule for a scaled sum")
    dtype = _dtype(x, y)
    first, second = known(x, dtype), known(y, dtype)
    name = func._schema.name
    if "rsub" in name:
        first, second = second, first
    if "sub" in name:
        second = arithmetic.negative(second)
    return seen.rounds((discs if dtype.is_complex else arithmetic).add(first, second, dtype))


@_rule("mul")
def _mul(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, y = args
    if _no_floats(x, y):
        return _made(func, args, kwargs)
    return multiplied(seen, x, y)


def multiplied(seen: Interpreter, x: Any, y: Any) -> Enclosure:  # noqa: ANN401
    """Returns a product."""
    dtype = _dtype(x, y)
    rules = discs if dtype.is_complex else arithmetic
    return seen.rounds(rules.multiply(known(x, dtype), known(y, dtype), dtype))


@_rule("div")
def _div(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, y = args
    if kwargs.get("rounding_mode") is not None or _no_floats(x, y):
        if _no_floats(x, y):
            return _made(func, args, kwargs)
        raise UnknownError("no rule for a rounded quotient")
    dtype = _dtype(x, y)
    if dtype.is_complex:
        raise UnknownError("no rule for a complex quotient")
    out, fresh, pole = arithmetic.divide(known(x, dtype), known(y, dtype), dtype)
    if bool(pole.any()):
        seen.hazard("may divide by 0", float("inf"))
    return seen.rounds((out, fresh))


@_rule("reciprocal")
def _reciprocal(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    return _div(seen, func, (1, args[0]), {})


@_rule("neg")
def _neg(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x = args[0]
    return _made(func, args, kwargs) if _no_floats(x) else arithmetic.negative(known(x, x.dtype))


@_rule("addcmul")
def _addcmul(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, y, z = args
    if kwargs.get("value", 1) != 1:
        raise UnknownError("no rule for a scaled product")
    return _add(seen, torch.ops.aten.add.Tensor, (x, multiplied(seen, y, z)), {})


@_rule("pow")
def _pow(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, power = args
    if power != 2 or not isinstance(x, Enclosure):
        raise UnknownError("no rule for a power")
    return multiplied(seen, x, x)


@_rule("exp")
def _exp(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x = known(args[0], args[0].dtype)
    if x.dtype.is_complex:
        return seen.rounds(discs.exponential(x, x.dtype))
    return _function(seen, func, args, kwargs)


@_rule(*(name for name in functions.FUNCTIONS if name != "exp"))
def _function(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, *rest = args
    x = known(x, x.dtype)
    if x.dtype.is_complex or any(r not in (1, 1.0, 20) for r in rest):
        raise UnknownError(f"no rule for this {func}")
    name = func._schema.name.removeprefix("aten::").rstrip("_")
    out, fresh, nowhere = functions.apply(name, x, x.dtype)
    if bool(nowhere.any()):
        seen.hazard(f"{name} may have no value", float("inf"))
    result = seen.rounds((out, fresh))
    if name == "log_sigmoid_forward":
        return result, exact(torch.zeros(0, dtype=x.dtype))
    return result


@_rule("abs")
def _abs(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x = known(args[0], args[0].dtype)
    if x.dtype.is_complex:
        raise UnknownError("no rule for a modulus")
    a, b, e = x.parts
    inside = torch.where((a <= 0) & (b >= 0), torch.zeros_like(a), torch.minimum(a.abs(), b.abs()))
    return Enclosure((inside, torch.maximum(a.abs(), b.abs()), e.clone()), x.dtype)


@_rule("clamp", "clamp_min", "clamp_max")
def _clamp(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    name = func._schema.name.removeprefix("aten::").rstrip("_")
    x, *ends = args
    low, high = ([*ends, None, None] if name != "clamp_max" else [None, *ends])[:2]
    low, high = kwargs.get("min", low), kwargs.get("max", high)
    if any(isinstance(end, Tensor) for end in (low, high)):
        raise UnknownError("no rule for a clamp between tensors")
    off = max((abs(z) for z in (low, high) if z is not None and not _holds(z, x.dtype)), default=0)
    out = functions.bounded(known(x, x.dtype), low, high)
    return seen.rounds((out, torch.full_like(out.parts[2], off * 2 * unit(x.dtype))))


@_rule("sum", "cumsum")
def _sum(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, *rest = args
    if _no_floats(x):
        return _made(func, args, kwargs)
    x = known(x, x.dtype)
    dtype = kwargs.get("dtype") or x.dtype
    if dtype != x.dtype:
        x = cast(seen, x, dtype)
    if "cumsum" in func._schema.name:
        if dtype.is_complex:
            raise UnknownError("no rule for a running sum of complex numbers")
        return seen.rounds(arithmetic.running_total(x, rest[0], dtype), computed(x).sum(rest[0]))
    dims = rest[0] if rest else kwargs.get("dim")
    dims = list(range(x.ndim)) if not dims else list(dims)
    keep = rest[1] if len(rest) > 1 else kwargs.get("keepdim", False)
    rules = discs if dtype.is_complex else arithmetic
    return seen.rounds(rules.total(x, dims, keep, dtype), computed(x).sum(dims))


@_rule("mm", "bmm", "matmul")
def _mm(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, y = args
    dtype = _dtype(x, y)
    x, y = known(x, dtype), known(y, dtype)
    if min(x.ndim, y.ndim) < 2:
        raise UnknownError("no rule for a product with a vector")
    return seen.rounds(products.product(x, y, dtype), computed(x) @ computed(y))


@_rule("baddbmm", "addmm")
def _addmm(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    if kwargs.get("beta", 1) != 1 or kwargs.get("alpha", 1) != 1 or len(args) != 3:
        raise UnknownError("no rule for a scaled product")
    product = _mm(seen, func, args[1:], {})
    return _add(seen, torch.ops.aten.add.Tensor, (args[0], product), {})


@_rule("linalg_vector_norm")
def _norm(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, rest = known(args[0], args[0].dtype), dict(enumerate(args[1:]))
    order, dims, keep = rest.get(0, 2), rest.get(1), rest.get(2, False)
    if order != 2 or kwargs.get("dtype") is not None or x.dtype.is_complex:
        raise UnknownError("no rule for this norm")
    squares = computed(x) ** 2 * x.numel()
    return seen.rounds(functions.length(x, dims, keep, x.dtype), squares)


@_rule("_softmax", "_safe_softmax")
def _softmax(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, dim = known(args[0], args[0].dtype), args[1]
    return seen.rounds(attention.softmax(x, dim, x.dtype))


@_rule("_fft_c2c", "_fft_r2c", "_fft_c2r")
def _fft(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, dims, normalization, last = args
    if len(dims) != 1 or normalization not in (0, 2):
        raise UnknownError("no rule for this Fourier transform")
    dtype = torch.promote_types(x.dtype, torch.complex64)
    x, name = known(x, x.dtype), func._schema.name
    a, b, _ = x.parts
    middle = func(a if x.dtype.is_complex else (a + b) / 2, dims, normalization, last)
    scale = float(middle.shape[dims[0]]) if normalization == 2 else 1.0
    dtype = dtype.to_real() if "c2r" in name else dtype
    return seen.rounds(products.transform(x, middle, dims[0], scale, dtype))


@_rule("complex")
def _complex(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    re, im = (known(x, x.dtype) for x in args)
    return discs.joined(re, im, torch.promote_types(re.dtype, torch.complex64))


@_rule("view_as_complex")
def _view_as_complex(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x = known(args[0], args[0].dtype)
    re, im = (each(methodcaller("select", -1, k), x) for k in (0, 1))
    return discs.joined(re, im, x.dtype.to_complex())


@_rule("view_as_real", "real", "imag")
def _parts(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, name = known(args[0], args[0].dtype), func._schema.name.removeprefix("aten::")
    if not x.dtype.is_complex:
        return x
    both = discs.parted(x, x.dtype.to_real())
    if name == "view_as_real":
        return both
    return each(lambda part: part.select(-1, int(name == "imag")), both, copied=True)


@_rule("conj", "_conj", "conj_physical", "_conj_physical", "resolve_conj")
def _conj(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x = known(args[0], args[0].dtype)
    if not x.dtype.is_complex or "resolve" in func._schema.name:
        return x
    a, b, e = x.parts
    return Enclosure((a.conj().resolve_conj(), b, e), x.dtype, copied=True)


def cast(seen: Interpreter, x: Enclosure, dtype: torch.dtype) -> Enclosure:
    """A tensor in another dtype."""
    a, b, e = x.parts
    if dtype.is_complex and not x.dtype.is_complex:
        middle, radius, error = discs.disc(x)
        x = Enclosure((middle, radius, error.clone()), x.dtype.to_complex())
        a, b, e = x.parts
    if x.dtype.is_complex and not dtype.is_complex:
        raise UnknownError("no rule for a complex number made real")
    if not (dtype.is_floating_point or dtype.is_complex):
        raise UnknownError("no rule for a number made whole")
    out = Enclosure((a.clone(), b.clone(), e.clone()), dtype)
    if unit(dtype) <= unit(x.dtype) and least(dtype) <= least(x.dtype):
        return out
    return seen.rounds((out, computed(out) * (unit(dtype) * (1 + 2.0**-30)) + least(dtype)))


@_rule("_to_copy", "to")
def _to(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x = args[0]
    named = [a for a in (*args[1:], *kwargs.values()) if isinstance(a, torch.dtype)]
    dtype = named[0] if named else x.dtype
    if _no_floats(x):
        made = func(*args, **kwargs)
        if not (made.is_floating_point() or made.is_complex()):
            return made
        if not bool((made.to(torch.complex128) == x.to(torch.complex128)).all()):
            raise UnknownError("no rule for whole numbers that a dtype cannot hold")
        return exact(made)
    x = known(x, x.dtype)
    same = dtype == x.dtype and func._schema.name == "aten::to"
    return x if same else cast(seen, x, dtype)


@_rule("copy_", "copy")
def _copy(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    target, source = args[:2]
    if _no_floats(target, source):
        return _made(func, args, kwargs)
    source = known(source, target.dtype)
    kept = source if source.dtype == target.dtype else cast(seen, source, target.dtype)
    return each(lambda part: part.expand(target.shape), kept)


@_rule("zero", "fill")
def _fill(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    target = args[0]
    if _no_floats(target):
        return _made(func, args, kwargs)
    value = known(args[1] if len(args) > 1 else 0, target.dtype)
    return each(lambda part: part.expand(target.shape), value)


@_rule(*ALIASES, *COPIES)
def _moved(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, *rest = args
    if _no_floats(x):
        return _made(func, args, kwargs)
    x = known(x, x.dtype)
    if any(isinstance(r, Enclosure) for r in rest):
        raise UnknownError(f"no rule for {func} by numbers")
    copies = func._schema.name.removeprefix("aten::").rstrip("_") in COPIES
    if copies and not x.dtype.is_complex and "tri" in func._schema.name:
        parts = tuple(func(part.clone(), *rest, **kwargs) for part in x.parts)
        return Enclosure(parts, x.dtype)
    kwargs.pop("memory_format", None)
    return each(lambda part: func(part, *rest, **kwargs), x)


@_rule(*PARTED)
def _parted(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, *rest = args
    if _no_floats(x):
        return _made(func, args, kwargs)
    x = known(x, x.dtype)
    pieces = [func(part, *rest, **kwargs) for part in x.parts]
    return [Enclosure(parts, x.dtype, x.copied) for parts in zip(*pieces, strict=True)]


@_rule("cat", "stack")
def _cat(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    tensors, *rest = args
    if _no_floats(*tensors):
        return _made(func, args, kwargs)
    dtype = _dtype(*tensors)
    kept = [x if x.dtype == dtype else cast(seen, x, dtype)
            for x in (known(t, dtype) for t in tensors)]  # fmt: skip
    parts = tuple(
        func(list(p), *rest, **kwargs) for p in zip(*(x.parts for x in kept), strict=True)
    )
    return Enclosure(parts, dtype)


@_rule("constant_pad_nd", "pad")
def _pad(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, *rest = args
    if _no_floats(x):
        return _made(func, args, kwargs)
    if any(r not in (0, "constant", None) for r in rest[1:]) or kwargs.get("value"):
        raise UnknownError("no rule for padding with other numbers than 0")
    return each(lambda part: torch.nn.functional.pad(part, rest[0]), known(x, x.dtype))


@_rule("masked_fill")
def _masked_fill(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, mask, value = args
    return _where(seen, (mask, value, x), x.dtype)


@_rule("where")
def _where_rule(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    _, x, y = args
    if _no_floats(x, y):
        return _made(func, args, kwargs)
    return _where(seen, args, _dtype(x, y))


def _where(seen: Interpreter, args: Args, dtype: torch.dtype) -> Enclosure:
    """One of two numbers at each place; one of the program must be one that the dtype has."""
    mask, x, y = args
    for z in (x, y):
        if not isinstance(z, Tensor) and not _holds(z, dtype):
            raise UnknownError(f"no rule for a choice of {z} in {dtype}")
    first, second = (
        k if k.dtype == dtype else cast(seen, k, dtype) for k in (known(z, dtype) for z in (x, y))
    )
    a, b, error = (torch.where(mask, p, q) for p, q in zip(first.parts, second.parts, strict=True))
    return Enclosure((a, b, error), dtype)


def _holds(value: float, dtype: torch.dtype) -> bool:
    """Whether a dtype has a number as it is."""
    number = torch.tensor(value, dtype=torch.float64)
    return bool(number.to(dtype).to(torch.complex128) == number)


@_rule("new_empty", "empty_like", "new_zeros", "zeros_like", "ones_like", "new_ones")
def _like(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, *rest = args
    dtype = kwargs.get("dtype") or x.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        shape = rest[0] if rest else x.shape
        whole = torch.ones if "ones" in func._schema.name else torch.zeros
        return whole(shape, dtype=dtype)
    make = torch.ones if "ones" in func._schema.name else torch.zeros
    return exact(make(rest[0] if rest else x.shape, dtype=dtype))


@_rule("linalg_solve_triangular")
def _solve(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    t, b = args
    if not kwargs.get("unitriangular") or not kwargs.get("left", True) or t.dtype.is_complex:
        raise UnknownError("no rule for this triangular system")
    dtype = _dtype(t, b)
    return seen.rounds(
        products.solved(known(t, dtype), known(b, dtype), bool(kwargs.get("upper")), dtype)
    )


_ORDERS = {"gt": torch.gt, "ge": torch.ge, "lt": torch.lt, "le": torch.le, "eq": torch.eq,
           "ne": torch.ne}  # fmt: skip


@_rule(*_ORDERS)
def _compare(seen: Interpreter, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, y = args
    if not any(isinstance(z, Enclosure) for z in args):
        return _made(func, args, kwargs)
    dtype = _dtype(x, y)
    x, y = known(x, dtype), known(y, dtype)
    if dtype.is_complex:
        raise UnknownError("no rule for an order of complex numbers")
    (a, b, e), (c, d, f) = x.parts, y.parts
    low, high = a - e - (d + f), b + e - (c - f)
    order = _ORDERS[func._schema.name.removeprefix("aten::")]
    first, second, between = order(low, 0), order(high, 0), (low < 0) & (high > 0)
    single = (low == 0) & (high == 0)
    unsure = (first != second) | (between & (order in (torch.eq, torch.ne)) & ~single)
    if bool(unsure.any()):
        raise UnknownError(f"a comparison that is not decided on this domain ({seen.place().text})")
    return first


def attended(
    seen: Interpreter,
    q: Any,  # noqa: ANN401 - as `scaled_dot_product_attention` takes them
    k: Any,  # noqa: ANN401
    v: Any,  # noqa: ANN401
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    **options: Any,  # noqa: ANN401
) -> Enclosure:
    """Returns PyTorch's fused attention, whichever kernel runs it."""
    if dropout_p or any(options.values()):
        raise UnknownError("no rule for attention with dropout or shared heads")
    if attn_mask is not None and attn_mask.dtype is not torch.bool:
        raise UnknownError("no rule for attention with weights in its mask")
    dtype = _dtype(q, k, v)
    q, k, v = (known(x, dtype) for x in (q, k, v))
    turned = each(lambda part: part.transpose(-1, -2), k)
    inner = torch.promote_types(dtype, torch.float32)
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    dots = seen.rounds(products.product(q, turned, inner))
    score = multiplied(seen, dots, factor)
    a, b, e = score.parts
    # Factors may be put in front of queries and keys, which rounds up to four times more.
    error = e + computed(score) * 6 * unit(inner)
    rows, keys = score.shape[-2:]
    seen_keys = torch.ones(rows, keys, dtype=torch.bool)
    if is_causal:
        seen_keys = seen_keys.tril()
    if attn_mask is not None:
        seen_keys = seen_keys & attn_mask
    shape = (*torch.broadcast_shapes(score.shape[:-2], v.shape[:-2]), rows, keys)
    scores = Enclosure((a, b, error), inner)
    return seen.rounds(attention.mean(scores, seen_keys.expand(shape), v, dtype))


def normalized(
    seen: Interpreter,
    x: Any,  # noqa: ANN401 - as `normalize` takes it
    p: float = 2.0,
    dim: int = 1,
    eps: float = 1e-12,
    out: None = None,
) -> Enclosure:
    """Returns PyTorch's `normalize`: x over its length, or over a floor."""
    if p != 2 or out is not None or not isinstance(dim, int) or x.dtype.is_complex:
        raise UnknownError("no rule for this norm")
    x = known(x, x.dtype)
    squares = computed(x) ** 2 * x.shape[dim]
    return seen.rounds(functions.normalized(x, dim, eps, x.dtype), squares)


WHOLE: dict[Callable[..., Any], Rule] = {
    torch.nn.functional.scaled_dot_product_attention: attended,
    torch.nn.functional.normalize: normalized,
}
"""Rules of functions that PyTorch may run in several ways."""
