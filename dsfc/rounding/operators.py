"""Rules of PyTorch's operators that compute, by name."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from dsfc.rounding import arithmetic, attention, discs, functions, products
from dsfc.rounding.enclosure import Enclosure, UnknownError, computed, each, exact
from dsfc.rounding.rules import Args, Options, Rule, Seen, dtype_of, known, made, no_floats
from dsfc.rounding.selections import cast, holds
from dsfc.rounding.units import unit


def _add(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, y, *rest = args
    if no_floats(x, y):
        return made(func, args, kwargs)
    alpha = rest[0] if rest else kwargs.get("alpha", 1)
    if alpha != 1:
        raise UnknownError("no rule for a scaled sum")
    dtype = dtype_of(x, y)
    first, second = known(x, dtype), known(y, dtype)
    name = func._schema.name
    if "rsub" in name:
        first, second = second, first
    if "sub" in name:
        second = arithmetic.negative(second)
    added = discs.add if dtype.is_complex else arithmetic.add
    return seen.rounds(added(first, second, dtype))


def _mul(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, y = args
    if no_floats(x, y):
        return made(func, args, kwargs)
    return multiplied(seen, x, y)


def multiplied(seen: Seen, x: Any, y: Any) -> Enclosure:  # noqa: ANN401
    """Returns a product."""
    dtype = dtype_of(x, y)
    times = discs.multiply if dtype.is_complex else arithmetic.multiply
    return seen.rounds(times(known(x, dtype), known(y, dtype), dtype))


def _div(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, y = args
    if kwargs.get("rounding_mode") is not None or no_floats(x, y):
        if no_floats(x, y):
            return made(func, args, kwargs)
        raise UnknownError("no rule for a rounded quotient")
    dtype = dtype_of(x, y)
    if dtype.is_complex:
        raise UnknownError("no rule for a complex quotient")
    out, fresh, pole = arithmetic.divide(known(x, dtype), known(y, dtype), dtype)
    if bool(pole.any()):
        seen.hazard("division by 0 is not ruled out", float("inf"))
    return seen.rounds((out, fresh))


def _reciprocal(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    return _div(seen, func, (1, args[0]), {})


def _neg(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x = args[0]
    return made(func, args, kwargs) if no_floats(x) else arithmetic.negative(known(x, x.dtype))


def _addcmul(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, y, z = args
    if kwargs.get("value", 1) != 1:
        raise UnknownError("no rule for a scaled product")
    return _add(seen, torch.ops.aten.add.Tensor, (x, multiplied(seen, y, z)), {})


def _pow(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, power = args
    if power != 2 or not isinstance(x, Enclosure):
        raise UnknownError("no rule for a power")
    return multiplied(seen, x, x)


def _exp(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x = known(args[0], args[0].dtype)
    if x.dtype.is_complex:
        return seen.rounds(discs.exponential(x, x.dtype))
    return _function(seen, func, args, kwargs)


def _function(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, *rest = args
    x = known(x, x.dtype)
    if x.dtype.is_complex or any(r not in (1, 1.0, 20) for r in rest):
        raise UnknownError(f"no rule for this {func}")
    name = func._schema.name.removeprefix("aten::").rstrip("_")
    out, fresh, nowhere = functions.apply(name, x, x.dtype)
    if bool(nowhere.any()):
        seen.hazard(f"an argument of {name} without a value is not ruled out", float("inf"))
    result = seen.rounds((out, fresh))
    if name == "log_sigmoid_forward":
        return result, exact(torch.zeros(0, dtype=x.dtype))
    return result


def _abs(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x = known(args[0], args[0].dtype)
    if x.dtype.is_complex:
        raise UnknownError("no rule for a modulus")
    a, b, e = x.parts
    inside = torch.where((a <= 0) & (b >= 0), torch.zeros_like(a), torch.minimum(a.abs(), b.abs()))
    return Enclosure((inside, torch.maximum(a.abs(), b.abs()), e.clone()), x.dtype)


def _clamp(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    name = func._schema.name.removeprefix("aten::").rstrip("_")
    x, *ends = args
    low, high = ([*ends, None, None] if name != "clamp_max" else [None, *ends])[:2]
    low, high = kwargs.get("min", low), kwargs.get("max", high)
    if any(isinstance(end, Tensor) for end in (low, high)):
        raise UnknownError("no rule for a clamp between tensors")
    off = max((abs(z) for z in (low, high) if z is not None and not holds(z, x.dtype)), default=0)
    out = functions.bounded(known(x, x.dtype), low, high)
    return seen.rounds((out, torch.full_like(out.parts[2], off * 2 * unit(x.dtype))))


def _sum(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, *rest = args
    if no_floats(x):
        return made(func, args, kwargs)
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
    total = discs.total if dtype.is_complex else arithmetic.total
    return seen.rounds(total(x, dims, keep, dtype), computed(x).sum(dims))


def _mm(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, y = args
    dtype = dtype_of(x, y)
    x, y = known(x, dtype), known(y, dtype)
    if min(x.ndim, y.ndim) < 2:
        raise UnknownError("no rule for a product with a vector")
    return seen.rounds(products.product(x, y, dtype), computed(x) @ computed(y))


def _addmm(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    if kwargs.get("beta", 1) != 1 or kwargs.get("alpha", 1) != 1 or len(args) != 3:
        raise UnknownError("no rule for a scaled product")
    product = _mm(seen, func, args[1:], {})
    return _add(seen, torch.ops.aten.add.Tensor, (args[0], product), {})


def _norm(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, rest = known(args[0], args[0].dtype), dict(enumerate(args[1:]))
    order, dims, keep = rest.get(0, 2), rest.get(1), rest.get(2, False)
    if order != 2 or kwargs.get("dtype") is not None or x.dtype.is_complex:
        raise UnknownError("no rule for this norm")
    squares = computed(x) ** 2 * x.numel()
    return seen.rounds(functions.length(x, dims, keep, x.dtype), squares)


def _softmax(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, dim = known(args[0], args[0].dtype), args[1]
    return seen.rounds(attention.softmax(x, dim, x.dtype))


def _fft(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
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


def _complex(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    re, im = (known(x, x.dtype) for x in args)
    return discs.joined(re, im, torch.promote_types(re.dtype, torch.complex64))


def _part(x: Enclosure, k: int) -> Enclosure:
    """One entry along the last axis."""
    return each(lambda part: part.select(-1, k), x)


def _view_as_complex(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x = known(args[0], args[0].dtype)
    re, im = (_part(x, k) for k in (0, 1))
    return discs.joined(re, im, x.dtype.to_complex())


def _parts(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, name = known(args[0], args[0].dtype), func._schema.name.removeprefix("aten::")
    if not x.dtype.is_complex:
        return x
    both = discs.parted(x, x.dtype.to_real())
    if name == "view_as_real":
        return both
    return each(lambda part: part.select(-1, int(name == "imag")), both, copied=True)


def _conj(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x = known(args[0], args[0].dtype)
    if not x.dtype.is_complex or "resolve" in func._schema.name:
        return x
    a, b, e = x.parts
    return Enclosure((a.conj().resolve_conj(), b, e), x.dtype, copied=True)


def _larger(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, y = args
    if no_floats(x, y):
        return made(func, args, kwargs)
    dtype = dtype_of(x, y)
    (a, b, e), (c, d, f) = known(x, dtype).parts, known(y, dtype).parts
    return Enclosure((func(a, c), func(b, d), torch.maximum(e, f)), dtype)


def _running_largest(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, dim = known(args[0], args[0].dtype), args[1]
    a, b, e = (part.cummax(dim).values for part in x.parts)
    # Where the largest is depends on numbers: whatever reads it has no rule.
    return Enclosure((a, b, e), x.dtype), exact(torch.zeros(x.shape))


def _polar(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    size, angle = (known(x, x.dtype) for x in args)
    cosine = _function(seen, torch.ops.aten.cos.default, (angle,), {})
    sine = _function(seen, torch.ops.aten.sin.default, (angle,), {})
    parts = [multiplied(seen, size, x) for x in (cosine, sine)]
    return discs.joined(parts[0], parts[1], torch.promote_types(size.dtype, torch.complex64))


def _solve(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    t, b = args
    if not kwargs.get("unitriangular") or not kwargs.get("left", True) or t.dtype.is_complex:
        raise UnknownError("no rule for this triangular system")
    dtype = dtype_of(t, b)
    return seen.rounds(
        products.solved(known(t, dtype), known(b, dtype), bool(kwargs.get("upper")), dtype)
    )


COMPUTE: dict[str, Rule] = {
    **dict.fromkeys(functions.FUNCTIONS, _function),
    "add": _add,
    "sub": _add,
    "rsub": _add,
    "mul": _mul,
    "div": _div,
    "reciprocal": _reciprocal,
    "neg": _neg,
    "addcmul": _addcmul,
    "pow": _pow,
    "exp": _exp,
    "abs": _abs,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp,
    "sum": _sum,
    "cumsum": _sum,
    "mm": _mm,
    "bmm": _mm,
    "matmul": _mm,
    "baddbmm": _addmm,
    "addmm": _addmm,
    "linalg_vector_norm": _norm,
    "_softmax": _softmax,
    "_safe_softmax": _softmax,
    "_fft_c2c": _fft,
    "_fft_r2c": _fft,
    "_fft_c2r": _fft,
    "complex": _complex,
    "view_as_complex": _view_as_complex,
    "view_as_real": _parts,
    "real": _parts,
    "imag": _parts,
    "conj": _conj,
    "_conj": _conj,
    "conj_physical": _conj,
    "_conj_physical": _conj,
    "resolve_conj": _conj,
    "maximum": _larger,
    "minimum": _larger,
    "cummax": _running_largest,
    "polar": _polar,
    "linalg_solve_triangular": _solve,
}
"""Rules by the name of the operator, without the underscore of those in place."""
