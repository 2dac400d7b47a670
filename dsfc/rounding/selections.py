"""Rules of operators that move, choose, compare or cast entries, by name."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._ops import OpOverload

from dsfc.rounding import discs
from dsfc.rounding.enclosure import Enclosure, UnknownError, computed, each, exact, scalar
from dsfc.rounding.moves import ALIASES, COPIES, PARTED
from dsfc.rounding.rules import Args, Options, Rule, Seen, dtype_of, known, made, no_floats
from dsfc.rounding.units import least, unit


def cast(seen: Seen, x: Enclosure, dtype: torch.dtype) -> Enclosure:
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


def _to(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x = args[0]
    named = [a for a in (*args[1:], *kwargs.values()) if isinstance(a, torch.dtype)]
    dtype = named[0] if named else x.dtype
    if no_floats(x):
        out = func(*args, **kwargs)
        if not (out.is_floating_point() or out.is_complex()):
            return out
        if not bool((out.to(torch.complex128) == x.to(torch.complex128)).all()):
            raise UnknownError("no rule for whole numbers that a dtype cannot hold")
        return exact(out)
    x = known(x, x.dtype)
    same = dtype == x.dtype and func._schema.name == "aten::to"
    return x if same else cast(seen, x, dtype)


def _copy(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    target, source = args[:2]
    if no_floats(target, source):
        return made(func, args, kwargs)
    source = known(source, target.dtype)
    kept = source if source.dtype == target.dtype else cast(seen, source, target.dtype)
    return each(lambda part: part.expand(target.shape), kept)


def _fill(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    target = args[0]
    if no_floats(target):
        return made(func, args, kwargs)
    value = known(args[1] if len(args) > 1 else 0, target.dtype)
    return each(lambda part: part.expand(target.shape), value)


def _moved(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, *rest = args
    if no_floats(x):
        return made(func, args, kwargs)
    x = known(x, x.dtype)
    if any(isinstance(r, Enclosure) for r in rest):
        raise UnknownError(f"no rule for {func} by numbers")
    copies = func._schema.name.removeprefix("aten::").rstrip("_") in COPIES
    if copies and not x.dtype.is_complex and "tri" in func._schema.name:
        parts = tuple(func(part.clone(), *rest, **kwargs) for part in x.parts)
        return Enclosure(parts, x.dtype)
    kwargs.pop("memory_format", None)
    return each(lambda part: func(part, *rest, **kwargs), x)


def _parted(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, *rest = args
    if no_floats(x):
        return made(func, args, kwargs)
    x = known(x, x.dtype)
    pieces = [func(part, *rest, **kwargs) for part in x.parts]
    return [Enclosure(parts, x.dtype, x.copied) for parts in zip(*pieces, strict=True)]


def _cat(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    tensors, *rest = args
    if no_floats(*tensors):
        return made(func, args, kwargs)
    dtype = dtype_of(*tensors)
    kept = [x if x.dtype == dtype else cast(seen, x, dtype)
            for x in (known(t, dtype) for t in tensors)]  # fmt: skip
    parts = tuple(
        func(list(p), *rest, **kwargs) for p in zip(*(x.parts for x in kept), strict=True)
    )
    return Enclosure(parts, dtype)


def _pad(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, *rest = args
    if no_floats(x):
        return made(func, args, kwargs)
    if any(r not in (0, "constant", None) for r in rest[1:]) or kwargs.get("value"):
        raise UnknownError("no rule for padding with other numbers than 0")
    return each(lambda part: torch.nn.functional.pad(part, rest[0]), known(x, x.dtype))


def _masked_fill(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, mask, value = args
    return _where(seen, (mask, value, x), x.dtype)


def _where_rule(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    _, x, y = args
    if no_floats(x, y):
        return made(func, args, kwargs)
    return _where(seen, args, dtype_of(x, y))


def _where(seen: Seen, args: Args, dtype: torch.dtype) -> Enclosure:
    """One of two numbers at each place; one of the program must be one that the dtype has."""
    mask, x, y = args
    for z in (x, y):
        if not isinstance(z, Tensor) and not holds(z, dtype):
            raise UnknownError(f"no rule for a choice of {z} in {dtype}")
    first, second = (
        k if k.dtype == dtype else cast(seen, k, dtype) for k in (known(z, dtype) for z in (x, y))
    )
    a, b, error = (torch.where(mask, p, q) for p, q in zip(first.parts, second.parts, strict=True))
    return Enclosure((a, b, error), dtype)


def holds(value: float, dtype: torch.dtype) -> bool:
    """Whether a dtype has a number as it is."""
    number = torch.tensor(value, dtype=torch.float64)
    return bool(number.to(dtype).to(torch.complex128) == number)


def _like(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, *rest = args
    dtype = kwargs.get("dtype") or x.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        shape = rest[0] if rest else x.shape
        whole = torch.ones if "ones" in func._schema.name else torch.zeros
        return whole(shape, dtype=dtype)
    make = torch.ones if "ones" in func._schema.name else torch.zeros
    return exact(make(rest[0] if rest else x.shape, dtype=dtype))


def _full(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    name = func._schema.name.removeprefix("aten::")
    value = args[{"full": 1, "new_full": 2, "full_like": 1, "scalar_tensor": 0}[name]]
    like = args[0].dtype if isinstance(args[0], Tensor) else torch.get_default_dtype()
    dtype = kwargs.get("dtype") or like
    if not (dtype.is_floating_point or dtype.is_complex) or isinstance(value, bool):
        return made(func, args, kwargs)
    if isinstance(value, complex):
        raise UnknownError("no rule for complex constants")
    shape = () if name == "scalar_tensor" else args[0].shape if name == "full_like" else None
    shape = args[name == "new_full"] if shape is None else shape
    number = scalar(value, torch.float64)
    full = each(lambda part: part.expand(shape).clone(), number)
    return full if dtype == torch.float64 else cast(seen, full, dtype)


_ORDERS = {"gt": torch.gt, "ge": torch.ge, "lt": torch.lt, "le": torch.le, "eq": torch.eq,
           "ne": torch.ne}  # fmt: skip


def _compare(seen: Seen, func: OpOverload, args: Args, kwargs: Options) -> object:
    x, y = args
    if not any(isinstance(z, Enclosure) for z in args):
        return made(func, args, kwargs)
    dtype = dtype_of(x, y)
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


SELECT: dict[str, Rule] = {
    **dict.fromkeys((*ALIASES, *COPIES), _moved),
    **dict.fromkeys(PARTED, _parted),
    **dict.fromkeys(_ORDERS, _compare),
    "_to_copy": _to,
    "to": _to,
    "copy_": _copy,
    "copy": _copy,
    "zero": _fill,
    "fill": _fill,
    "cat": _cat,
    "stack": _cat,
    "constant_pad_nd": _pad,
    "pad": _pad,
    "masked_fill": _masked_fill,
    "where": _where_rule,
    "new_empty": _like,
    "empty_like": _like,
    "new_zeros": _like,
    "zeros_like": _like,
    "ones_like": _like,
    "new_ones": _like,
    "full": _full,
    "new_full": _full,
    "full_like": _full,
    "scalar_tensor": _full,
}
"""Rules by the name of the operator, without the underscore of those in place."""
