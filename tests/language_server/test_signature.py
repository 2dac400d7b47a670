from __future__ import annotations

import pytest

from dsfc.expr.distributions import DISTRIBUTIONS
from dsfc.expr.table import SPELLINGS, TABLE
from dsfc.language_server.signature import signature
from dsfc.mixer.reserved_names import FORMS

HEAD = "mixer m extends qkv {\n  score(a, b_Δ) = a · b_Δ\n  param W : d -> h × n\n"


def shown(open_text, text: str) -> str | None:
    """The signature with the part that is being written between stars."""
    help_ = signature(*open_text(text))
    if help_ is None:
        return None
    one = help_.signatures[help_.active]
    parts = (*one.indices, *one.arguments)
    start, end = parts[help_.part] if help_.part < len(parts) else (0, 0)
    return f"{one.label[:start]}*{one.label[start:end]}*{one.label[end:]}"


@pytest.mark.parametrize(
    "written, expected",
    [
        ("y = exp(‸", "exp(*x*)"),
        ("y = max(q, ‸k)", "max(a, *b*)"),
        ("y = max(exp(q), ‸", "max(a, *b*)"),
        ("y = max((q + k) * (q, ‸", "max(*a*, b)"),
        ("y = softmax[‸", "softmax[*n*](x)"),
        ("y = softmax[n](q + ‸", "softmax[n](*x*)"),
        ("y = sum[‸", "sum[*n*](x)"),
        ("y = sum[j ≤ ‸", "sum[*j ≤ i*](x)"),
        ("y = sum[j <= i](q · k[j‸", "sum[j ≤ i](*x*)"),
        ("y = sum[n](‸", "sum[n](*x*)"),
        ("y = prod[j < l ≤ i](‸", "prod[j < l ≤ i](*x*)"),
        ("y = rename[n, ‸", "rename[n, *m*](x)"),
        ("y = fir[t](q,\n    ‸", "fir[t](w, *x*)"),
        ("y = score(q, ‸", "score(a, *b_Δ*)"),
        ("y = W(‸", "W(*d*)"),
        ("y = score(q, k, ‸", "**score(a, b_Δ)"),
        ("x' = q by zoh(‸", "zoh(*Δ*)"),
        ("param g : h ~ normal(0, ‸", "normal(a, *b*)"),
        ("param g : h ~ legs_frequency[‸", "legs_frequency[*n*](x)"),
        ("y = (q‸", None),
        ("y = exp(q)‸", None),
        ("y = q[‸", None),
        ("y = exp(q # (‸", None),
        ("y = pi(‸", None),
        ("y = nothing(‸", None),
        ("x = exp(\n  claim ‸", None),
        ("x = exp(; y = ‸", None),
    ],
)
def test_the_call_around_the_caret(open_text, written: str, expected: str | None) -> None:
    assert shown(open_text, f"{HEAD}  {written}") == expected
    assert shown(open_text, f"{HEAD}  {written}\n}}\nmixer n extends qkv {{\n") == expected


def test_a_signature_says_what_is_called(open_text) -> None:
    help_ = signature(*open_text(f"{HEAD}  y = score(‸q, k)\n}}\n"))
    assert help_ is not None
    assert help_.signatures[0].meaning == "score(a, b_Δ) = a · b_Δ"
    both = signature(*open_text(f"{HEAD}  y = sum(‸"))
    assert both is not None and len(both.signatures) == 2


@pytest.mark.parametrize("name", [*SPELLINGS, *FORMS, *DISTRIBUTIONS])
def test_whatever_takes_arguments_has_a_signature(open_text, name: str) -> None:
    if name in SPELLINGS and not TABLE[SPELLINGS[name]].arity:
        return
    bracket = "[" if name in FORMS else "("
    help_ = signature(*open_text(f"{HEAD}  y = {name}{bracket}‸"))
    assert help_ is not None
    for one in help_.signatures:
        assert one.label.startswith(name) and one.meaning
        assert one.indices or one.arguments
        if name in DISTRIBUTIONS:
            assert len(one.arguments) == DISTRIBUTIONS[name].arity
