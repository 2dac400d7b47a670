"""What each form of the language means, worked out by hand in numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dsfc.expr.tree import Time
from dsfc.mixer import evaluate, sample, sizes, verify
from dsfc.mixer.ir import Mixer

Array = np.ndarray
MixerOf = Callable[..., Mixer]
Run = Callable[..., tuple[dict[str, Array], dict[str, Array]]]

LENGTH = 6
SIZES = {"d": 3, "n": 2, "m": 2, "h": 2, "p": 4, "b": 2, "c": 3}


@pytest.fixture
def run(mixer_of: MixerOf) -> Run:
    """Runs a text on random arrays: its values, and the inputs and parameters together."""

    def go(
        text: str, length: int = LENGTH, **given: Array
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        mixer = mixer_of(text)
        verify(mixer)
        names = {d.axis.name for d in mixer.axes}
        known = sizes(mixer, {k: v for k, v in SIZES.items() if k in names})
        drawn = sample(mixer, known, seed=1, length=length)
        inputs = drawn.inputs | {k: v for k, v in given.items() if k in drawn.inputs}
        values = evaluate(mixer, inputs, drawn.params, known)
        return values, inputs | drawn.params

    return go


def scalar_mixer(items: str, more: str = "") -> str:
    return f"mixer m {{\ndims d\n{more}\ninput u : d\n{items}\n}}"


def test_a_name_is_zero_before_the_sequence_and_a_function_of_it_is_not(run: Run) -> None:
    values, given = run(scalar_mixer("k = exp(u)\ny = k[i-1] + 10 * exp(u[i-1])"))
    u = given["u"]
    before = np.concatenate([np.zeros((1, 3)), u[:-1]])
    delayed = np.concatenate([np.zeros((1, 3)), np.exp(u[:-1])])
    assert np.allclose(values["y"], delayed + 10 * np.exp(before))


def test_first_marks_the_first_token(run: Run) -> None:
    values, given = run(scalar_mixer("y = (1 - first) * u + first[i-1]"))
    want = given["u"].copy()
    want[0] = 0
    want[1] += 1
    assert np.array_equal(values["y"], want)


@pytest.mark.parametrize(
    ("relation", "tokens"),
    [
        ("j ≤ i", lambda i: range(i + 1)),
        ("j < i", lambda i: range(i)),
        ("j ≥ i", lambda i: range(i, LENGTH)),
        ("j > i", lambda i: range(i + 1, LENGTH)),
        ("i ≥ j", lambda i: range(i + 1)),
        ("i < j", lambda i: range(i + 1, LENGTH)),
        ("j ≤ i-1", lambda i: range(i)),
        ("j < i-1", lambda i: range(max(i - 1, 0))),
    ],
)
def test_a_sum_over_time_runs_over_the_tokens_of_its_relation(
    relation: str, tokens: Callable[[int], range], run: Run
) -> None:
    values, given = run(scalar_mixer(f"y = sum[{relation}](u[j])"))
    want = [sum((given["u"][j] for j in tokens(i)), np.zeros(3)) for i in range(LENGTH)]
    assert np.allclose(values["y"], want)


def test_unindexed_names_in_a_sum_are_those_of_the_outer_token(run: Run) -> None:
    values, given = run(scalar_mixer("y = sum[j ≤ i](u * u[j-1])"))
    u = given["u"]
    want = [u[i] * sum((u[j - 1] for j in range(1, i + 1)), np.zeros(3)) for i in range(LENGTH)]
    assert np.allclose(values["y"], want)


def test_sums_nest_and_reach_either_index(run: Run) -> None:
    values, given = run(scalar_mixer("y = sum[j ≤ i](u[j] * sum[l < j](0.5^(j-l) * u[l] + u))"))
    u = given["u"]
    want = []
    for i in range(LENGTH):
        total = np.zeros(3)
        for j in range(i + 1):
            for k in range(j):
                total = total + u[j] * (0.5 ** (j - k) * u[k] + u[i])
        want.append(total)
    assert np.allclose(values["y"], want)


def test_a_lag_power_reads_as_written(run: Run) -> None:
    values, given = run(
        scalar_mixer("a = 0.5 + 0.1 * w\ny = sum[j ≤ i](a^(2*(i-j)+1) * u[j])", "param w : d unit")
    )
    a, u = 0.5 + 0.1 * given["w"], given["u"]
    want = [
        sum((a ** (2 * (i - j) + 1) * u[j] for j in range(i + 1)), np.zeros(3))
        for i in range(LENGTH)
    ]
    assert np.allclose(values["y"], want)


@pytest.mark.parametrize("lag", ["j - i + w", "w + j - i", "j + (w - i)", "-(i - w) + j"])
def test_a_lag_is_one_wherever_its_parts_stand(lag: str, run: Run) -> None:
    values, given = run(scalar_mixer(f"y = sum[j ≤ i](exp({lag}) * u[j])", "param w : d"))
    u, w = given["u"], given["w"]
    want = [
        sum((np.exp(j - i + w) * u[j] for j in range(i + 1)), np.zeros(3)) for i in range(LENGTH)
    ]
    assert np.allclose(values["y"], want)


@pytest.mark.parametrize(
    ("bounds", "tokens"),
    [
        ("j < l ≤ i", lambda i, j: range(j + 1, i + 1)),
        ("j ≤ l < i", lambda i, j: range(j, i)),
        ("i ≥ l > j", lambda i, j: range(j + 1, i + 1)),
    ],
)
def test_a_running_product(bounds: str, tokens: Callable[[int, int], range], run: Run) -> None:
    values, given = run(
        scalar_mixer(f"a = sigmoid(u)\ny = sum[j ≤ i](prod[{bounds}](a[l]) * u[j])")
    )
    u = given["u"]
    a = 1 / (1 + np.exp(-u))
    want = []
    for i in range(LENGTH):
        total = np.zeros(3)
        for j in range(i + 1):
            total += np.prod([np.ones(3), *(a[k] for k in tokens(i, j))], axis=0) * u[j]
        want.append(total)
    assert np.allclose(values["y"], want)


@pytest.mark.parametrize(
    ("bounds", "lags"),
    [
        ("i-3 < l ≤ i", range(3)),
        ("i-2 ≤ l < i", range(1, 3)),
        ("i-1 ≥ l > i-3", range(1, 3)),
        ("i < l ≤ i", range(0)),
        ("i < l ≤ i-2", range(0)),
    ],
)
def test_a_product_over_a_window_has_its_factors_at_each_token(
    bounds: str, lags: range, run: Run
) -> None:
    values, given = run(
        scalar_mixer(
            f"a = 1 + sigmoid(u)\ny = u * prod[{bounds}](a[l] + w^(i-l))", "param w : d unit"
        )
    )
    a = np.concatenate([np.zeros((3, 3)), 1 + 1 / (1 + np.exp(-given["u"]))])
    want = [np.prod([given["u"][i]] + [a[i + 3 - k] + given["w"]**k for k in lags], axis=0)
            for i in range(LENGTH)]  # fmt: skip
    assert np.allclose(values["y"], want)


def test_a_window_may_hold_sums_products_filters_and_functions(run: Run) -> None:
    values, given = run(
        scalar_mixer(
            "f(x) = x + x[i-1]\n"
            "past = prod[i-2 < l ≤ i](sum[j ≤ l](u[j]))\n"
            "double = prod[i-2 < l ≤ i](prod[l-2 < m ≤ l](u[m]))\n"
            "filtered = prod[i-2 < l ≤ i](fir[t](w, u[l]))\n"
            "called = prod[i-2 < l ≤ i](f(u[l]))\n"
            "summed = sum[j ≤ i](prod[j-2 < l ≤ j](u[l]))\n"
            "y = past + double + filtered + called + summed",
            "dims t = 2\nparam w : t",
        )
    )
    length, w = LENGTH, given["w"]
    u = np.concatenate([np.zeros((4, 3)), given["u"]])
    so_far = np.cumsum(u, axis=0)
    now, before = slice(4, None), slice(3, -1)
    one, two, three = u[3:-1], u[2:-2], u[1:-3]
    assert len(three) == length
    assert np.allclose(values["past"], so_far[now] * so_far[before])
    assert np.allclose(values["double"], u[now] * one * one * two)
    assert np.allclose(values["filtered"], (w[0] * u[now] + w[1] * one) * (w[0] * one + w[1] * two))
    assert np.allclose(values["called"], (u[now] + one) * (one + two))
    assert np.allclose(values["summed"], np.cumsum(u[now] * one, axis=0))


def test_a_constant_may_stand_in_an_index(run: Run) -> None:
    values, given = run(
        scalar_mixer(
            "const w = 3; const half = w / 2 + 1/2\nf(x, l) = x[i-l]\n"
            "y = prod[i-w < l ≤ i](1 + u[l-half]) + f(u, w) + sum[j ≤ i-w](u[j-1])"
        )
    )
    u = np.concatenate([np.zeros((8, 3)), given["u"]])
    at = [slice(8 - k, len(u) - k) for k in range(6)]
    window = (1 + u[at[2]]) * (1 + u[at[3]]) * (1 + u[at[4]])
    assert np.allclose(values["y"], window + u[at[3]] + np.cumsum(u, axis=0)[at[4]])


def test_a_window_of_constants_is_a_constant(mixer_of: MixerOf) -> None:
    mixer = mixer_of(scalar_mixer("a = prod[i-3 < l ≤ i](2 * w)\ny = a * u", "param w : d"))
    verify(mixer)
    (a, _) = mixer.definitions
    assert a.value.time is Time.CONST


def test_a_function_of_a_lag_and_an_indexed_argument(run: Run) -> None:
    values, given = run(
        scalar_mixer("e(l, s) = exp(-l * w + s)\ny = sum[j < i](e(i-1-j, u[j]))", "param w : d")
    )
    u, w = given["u"], given["w"]
    want = [
        sum((np.exp(-(i - 1 - j) * w + u[j]) for j in range(i)), np.zeros(3)) for i in range(LENGTH)
    ]
    assert np.allclose(values["y"], want)


def test_a_function_delays_the_name_it_is_given(run: Run) -> None:
    values, given = run(scalar_mixer("shift(x) = x - x[i-1]\ny = shift(u) + shift(u[i-1])"))
    u = np.concatenate([np.zeros((2, 3)), given["u"]])
    assert np.allclose(values["y"], u[2:] - u[:-2])


def test_a_function_with_a_sum_does_not_capture_an_outer_index(run: Run) -> None:
    text = "total(x) = sum[j ≤ i](x)\ny = sum[j ≤ i](total(u[j]))"
    values, given = run(scalar_mixer(text))
    u = given["u"]
    want = [(i + 1) * u[: i + 1].sum(0) for i in range(LENGTH)]
    assert np.allclose(values["y"], want)


def test_a_backward_state_runs_from_the_end(run: Run) -> None:
    values, given = run(
        scalar_mixer("state s : d backward\ns = 0.5 * s[i+1] + u\ny = s + 10 * s[i+1]")
    )
    u, s = given["u"], np.zeros((LENGTH + 1, 3))
    for i in reversed(range(LENGTH)):
        s[i] = 0.5 * s[i + 1] + u[i]
    assert np.allclose(values["y"], s[:-1] + 10 * s[1:])


def test_states_may_read_each_other_and_a_later_one_an_earlier_at_any_lag(run: Run) -> None:
    values, given = run(
        scalar_mixer(
            "state s, r, t : d\n"
            "s = 0.5 * r[i-1] + u\nr = s + 0.25 * r[i-1]\nt = t[i-1] + r[i-2]\ny = t"
        )
    )
    u = given["u"]
    s, r, t = (np.zeros((LENGTH + 2, 3)) for _ in range(3))
    for i in range(LENGTH):
        s[i] = 0.5 * r[i - 1] + u[i]
        r[i] = s[i] + 0.25 * r[i - 1]
        t[i] = t[i - 1] + (r[i - 2] if i >= 2 else 0)
    assert np.allclose(values["y"], t[:LENGTH])


FLOW = "param a : d\nstate x : d\nA = -exp(a)\nx' = A * x + u by {}({})\ny = x"


@pytest.mark.parametrize("step", ["0.3", "softplus(u)", "0.3 * softplus(a)"])
def test_flows_by_their_rules(step: str, run: Run) -> None:
    got = {}
    for rule in ("zoh", "euler", "bilinear"):
        values, given = run(scalar_mixer(FLOW.format(rule, step)))
        got[rule] = values["y"]
    u, a = given["u"], -np.exp(given["a"])
    for rule in got:
        x = np.zeros(3)
        for i in range(LENGTH):
            delta = {
                "0.3": np.full(3, 0.3),
                "softplus(u)": np.log1p(np.exp(u[i])),
                "0.3 * softplus(a)": 0.3 * np.log1p(np.exp(given["a"])),
            }[step]
            match rule:
                case "zoh":
                    x = np.exp(delta * a) * x + (np.exp(delta * a) - 1) / a * u[i]
                case "euler":
                    x = np.exp(delta * a) * x + delta * u[i]
                case "bilinear":
                    x = ((1 + delta * a / 2) * x + delta * u[i]) / (1 - delta * a / 2)
            assert np.allclose(got[rule][i], x)


def test_a_zero_rate_flow_by_zoh_integrates(run: Run) -> None:
    values, given = run(scalar_mixer("state x : d\nx' = 0 * x + u by zoh(0.5)\ny = x"))
    assert np.allclose(values["y"], 0.5 * np.cumsum(given["u"], 0))


def test_definitions_of_the_state_inside_a_drift_are_continuous(run: Run) -> None:
    whole = "x' = u ⊗ P - P ⊗ sum[n](P * x) by bilinear(0.5)"
    parts = "F = sum[n](P * x)\nG = P ⊗ F\nx' = u ⊗ P - G by bilinear(0.5)"
    outs = [
        run(scalar_mixer(f"param P : n\nstate x : d × n\n{flow}\ny = sum[n](x)", "dims n"))[0]["y"]
        for flow in (whole, parts)
    ]
    assert np.array_equal(*outs)


def test_maps_with_one_matrix_per_index(run: Run) -> None:
    values, given = run(
        "mixer m {\ndims b, c\ninput u : b × c\nparam W : each b : c -> c\ny = W u\n}"
    )
    assert np.allclose(values["y"], np.einsum("bij,lbj->lbi", given["W"], given["u"]))


def test_shared_axes_of_heads_are_not_contracted(run: Run) -> None:
    values, given = run(
        "mixer m {\ndims heads h, n, p\ninput q : h × n\ninput S : h × n × p\ny = q · S\n}"
    )
    assert np.allclose(values["y"], np.einsum("lhn,lhnp->lhp", given["q"], given["S"]))


def test_a_filter_of_an_expression_and_of_a_summed_token(run: Run) -> None:
    values, given = run(
        scalar_mixer(
            "param w : d × n\ny = fir[n](w, exp(u)) + sum[j ≤ i](fir[n](w, u[j-1]))", "dims n"
        )
    )
    u, w = given["u"], given["w"]
    e = np.exp(u)
    one = [sum(w[:, r] * e[i - r] for r in range(2) if i >= r) for i in range(LENGTH)]
    two = [sum((w[:, r] * u[i - 1 - r] for r in range(2) if i - 1 >= r), np.zeros(3))
           for i in range(LENGTH)]  # fmt: skip
    assert np.allclose(values["y"], one + np.cumsum(two, 0))


def test_series_rename_and_reductions(run: Run) -> None:
    values, given = run(
        "mixer m {\ndims n, m\ninput q : n\nconst P = 2\n"
        "y = taylor[P](q) + max[m](rename[n, m](q)) + mean[n](q) ⊗ ones[n] + iota[n]\n}"
    )
    q = given["q"]
    want = 1 + q + q * q / 2 + q.max(1, keepdims=True) + q.mean(1, keepdims=True) + np.arange(2)
    assert np.allclose(values["y"], want)


SAME = [
    (
        "retnet",
        "S = γ * S[i-1] + k ⊗ v\nstate S : h × n × p\ny = n^(-1/2) * q · S",
    ),
    (
        "normalized_attn",
        "state S : h × n × p\nS = S[i-1] + k ⊗ v\ny = (q · S) / η",
    ),
    (
        "ssd",
        "y = sum[j ≤ i](prod[j < l ≤ i](exp(-a * Δ[l])) * c · b[j] * Δ[j] * x[j]) + D * x",
    ),
    ("s6", "S' = -exp(a) * S + u ⊗ b by euler(Δ)"),
    ("gated_deltanet", "F = α * S[i-1]\nS = F - β * k ⊗ (k · F) + β * k ⊗ v"),
]


@pytest.mark.parametrize(("base", "items"), SAME, ids=[base for base, _ in SAME])
def test_the_same_mixer_in_another_form(
    base: str, items: str, mixer_of: MixerOf, shipped: Callable[[str], Mixer]
) -> None:
    one, other = shipped(base), mixer_of(f"mixer other extends {base} {{\n{items}\n}}")
    known = sizes(one, {d.axis.name: 2 + k for k, d in enumerate(one.axes)})
    drawn = sample(one, known, seed=3, length=7)
    left = evaluate(one, drawn.inputs, drawn.params, known)["y"]
    right = evaluate(other, drawn.inputs, drawn.params, known)["y"]
    assert np.abs(left - right).max() <= 1e-13 * max(1, np.abs(left).max())
