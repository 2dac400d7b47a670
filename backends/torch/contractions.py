"""Prints products of two tensors, summed over axes, without the strings of `torch.einsum`.

`torch.einsum` reads its string at every call, which costs more than the product of one token. Each
axis is one letter, and letters stand in the order of the axes.
"""

from __future__ import annotations


def contraction(equation: str, left: str, right: str) -> str:
    """Returns the text of a product of two tensors, summed over the axes that the result lacks.

    Args:
        equation: the axes, as `Bhn,Bhnp->Bhp`; each operand has its axes in one common order.
        left: text of the first operand, a name, call or index.
        right: text of the second operand.
    """
    inputs, result = equation.split("->")
    a, b = inputs.split(",")
    whole = _merged(a, b, result)
    summed = [x for x in whole if x not in result]
    order = "".join(x for x in whole if x in result)
    if order != result or len(set(whole)) != len(whole):
        return f'torch.einsum("{equation}", {left}, {right})'
    if not summed:
        return f"{_aligned(left, a, whole)} * {_aligned(right, b, whole)}"
    if len(summed) == 1:
        (at,) = summed
        for vector, axes, matrix, of in ((left, a, right, b), (right, b, left, a)):
            if of == whole and whole[-2:-1] == at and whole[-1] not in axes:
                row = _aligned(vector, axes, whole[:-2] + "1" + at)
                return f"({row} @ {matrix}).squeeze(-2)"
            if of == whole and whole[-1] == at and whole[-2:-1] not in axes:
                column = _aligned(vector, axes, whole[:-2] + at + "1")
                return f"({matrix} @ {column}).squeeze(-1)"
    product = f"{_aligned(left, a, whole)} * {_aligned(right, b, whole)}"
    places = [str(whole.index(x) - len(whole)) for x in summed]
    dims = places[0] if len(places) == 1 else f"({', '.join(places)})"
    return f"({product}).sum({dims})"


def _merged(a: str, b: str, result: str) -> str:
    """All axes in an order that holds for both operands and, if there is one, for the result."""
    out: list[str] = []
    rest = [list(a), list(b), [x for x in result]]
    while any(rest):
        heads = [r[0] for r in rest if r]
        free = [x for x in heads if not any(x in r[1:] for r in rest)]
        if not free:
            return a + b  # no common order: a letter is there twice
        out.append(free[0])
        rest = [r[1:] if r and r[0] == free[0] else r for r in rest]
    return "".join(out)


def _aligned(text: str, axes: str, whole: str) -> str:
    """Text of an operand that broadcasts against a tensor with all axes."""
    slots = [":" if x in axes else "None" for x in whole]
    if all(s == ":" for s in slots):
        return text
    while slots and slots[0] == ":":
        slots.pop(0)
    if slots.count("None") == 1:
        return f"{text}.unsqueeze({slots.index('None') - len(slots)})"
    return f"{text}[..., {', '.join(slots)}]"


def updated(state: str, decay: str | None, equation: str, key: str, value: str) -> str:
    """Returns the text of decay · state + key ⊗ value; the decay broadcasts against the state."""
    inputs, result = equation.split("->")
    a, b = inputs.split(",")
    kept = f"{decay} * {state}" if decay else state
    drive = contraction(equation, key, value)
    if drive.startswith("torch.einsum") or set(a) | set(b) != set(result):
        return f"{kept} + {drive}"
    left, right = _aligned(key, a, result), _aligned(value, b, result)
    return f"torch.addcmul({kept}, {left}, {right})"
