"""Definitions that read their own past: all are reported, and taken for states to go on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsfc.diagnostics.report import DiagnosticError
from dsfc.mixer import verify
from dsfc.mixer.ir import Mixer
from dsfc.mixer.undeclared import UndeclaredStates

MixerOf = Callable[..., Mixer]

HEAD = "mixer m {\ndims d, heads h, n, p\ninput u : d\nparam W, U : d -> d\n"
HEADS = "W_Q, W_K : d -> h × n\nW_V : d -> h × p\nq = W_Q u; k = W_K u; v = W_V u\n"

LSTM = """param V : d -> d
f = sigmoid(W u + U y[i-1])
c = f * c[i-1] + tanh(V u)
y = U f * tanh(c)"""


def undeclared(mixer_of: MixerOf, items: str) -> UndeclaredStates:
    with pytest.raises(UndeclaredStates) as caught:
        mixer_of(f"{HEAD}{items}\n}}")
    return caught.value


def states(mixer: Mixer) -> dict[str, str]:
    return {s.name: " ".join(a.name for a in s.axes) for s in mixer.states}


def test_each_definition_whose_past_a_circle_reads_is_reported_by_its_shortest_way(
    mixer_of: MixerOf,
) -> None:
    found = undeclared(mixer_of, LSTM).diagnostics
    assert [(d.code, d.span.text, d.message.split(";")[0]) for d in found] == [
        ("E-RECURSION", "c", "`c` reads its own past (c → c[i-1])"),
        ("E-RECURSION", "y", "`y` reads its own past (y → f → y[i-1])"),
    ]


@pytest.mark.parametrize(
    ("items", "axes"),
    [
        ("y = y[i-1] + u", {"y": "d"}),
        ("y = W y[i-1]", {"y": "d"}),
        (LSTM, {"c": "d", "y": "d"}),
        ("b(x) = 2 * x\ny = b(y[i-1]) * b(u)", {"y": "d"}),
        (HEADS + "S = S[i-1] + k ⊗ v\ny = q · S", {"S": "h n p"}),
        (HEADS + "S = k ⊗ sum[n](k * S[i-1]) + k ⊗ v\ny = q · S", {"S": "h n p"}),
        (HEADS + "z = z[i-1] + k · q\ny = z * v", {"z": "h"}),
        (
            HEADS + "S = S[i-1] + z[i-1] * k ⊗ v\nz = (k · S) · v + z[i-1]\ny = z * v",
            {"S": "h n p", "z": "h"},
        ),
        ("s = s[i-1] + 1\ny = s * u", {"s": ""}),
        ("x' = u - x by zoh(1)\ny = y[i-1] + u", {}),
    ],
)
def test_the_mixer_it_would_be(items: str, axes: dict[str, str], mixer_of: MixerOf) -> None:
    if not axes:
        with pytest.raises(DiagnosticError) as caught:
            mixer_of(f"{HEAD}{items}\n}}")
        assert not isinstance(caught.value, UndeclaredStates)
        return
    mixer = undeclared(mixer_of, items).mixer
    verify(mixer)
    assert states(mixer) == axes


@pytest.mark.parametrize(
    "items",
    [
        "a = b + u\nb = a\ny = a",  # no past is read
        "x = x[i-1]\ny = x * u + q",  # another mistake
        "x = x[i-1] + a\na = x + a\ny = a",  # a circle in the present is left
        "x = x[i-1]\ny = W x",  # nothing says which axes x has
    ],
)
def test_no_mixer_is_made_up(items: str, mixer_of: MixerOf) -> None:
    with pytest.raises(DiagnosticError) as caught:
        mixer_of(f"{HEAD}{items}\n}}")
    assert not isinstance(caught.value, UndeclaredStates)
