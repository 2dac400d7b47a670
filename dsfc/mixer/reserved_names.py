"""Words of the language that mean something in a mixer and cannot be defined in one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

OUTPUT = "y"
"""The definition or state that a mixer gives."""

FORMS: Mapping[str, str] = MappingProxyType(
    {
        "sum": "sum along an axis, `sum[n](x)`, or over the past, `sum[j ≤ i](x)`",
        "mean": "mean along an axis, `mean[n](x)`",
        "prod": "product over a stretch of tokens, `prod[j < l ≤ i](x)`",
        "fir": "causal filter whose weights lie along an axis, `fir[t](w, x)`",
        "taylor": "series of exp up to an order, `taylor[2](x)`",
        "rename": "the same value with an axis renamed, `rename[n, m](x)`",
        "ones": "ones along an axis, `ones[n]`",
        "iota": "0, 1, 2, … along an axis, `iota[n]`",
    }
)
"""What is written like a function and is none, with its meaning; primitives have their table."""
