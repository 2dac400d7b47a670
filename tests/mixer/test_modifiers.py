"""`use`: what a modifier rewrites, and what its names become."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dsfc.diagnostics.report import Diagnostic
from dsfc.expr.text import text
from dsfc.mixer import evaluate, sample, sizes
from dsfc.mixer.ir import Mixer, Rewrite

MixerOf = Callable[..., Mixer]
Problems = Callable[..., tuple[Diagnostic, ...]]

TWICE = "modifier twice on x { param w : x;  x = w * x + x[i-1] }\n"
HOST = "mixer m {{ dims d, n; input u : d; param W : d -> n; k = W u; y = k; {} }}"


def definition(mixer: Mixer, name: str) -> str:
    found = mixer.definition(name)
    assert found is not None
    return text(found.value)


def test_a_definition_keeps_its_name_and_the_old_one_gets_another(mixer_of: MixerOf) -> None:
    mixer = mixer_of(TWICE + HOST.format("use twice on k"))
    assert definition(mixer, "k_before_twice") == "W u"
    assert definition(mixer, "k") == "k_twice_w * k_before_twice + k_before_twice[i-1]"
    (w,) = (p for p in mixer.params if p.name == "k_twice_w")
    assert [a.name for a in w.axes] == ["n"]
    assert mixer.rewrites == (Rewrite("use", "k", "twice"),)


def test_textual_order_is_order_of_application(mixer_of: MixerOf) -> None:
    more = "modifier plus on x { x = x + 1 }\n"
    one = mixer_of(TWICE + more + HOST.format("use twice on k; use plus on k"))
    other = mixer_of(TWICE + more + HOST.format("use plus on k; use twice on k"))
    assert definition(one, "k") == "k_before_plus + 1"
    assert definition(other, "k_before_twice") == "k_before_plus + 1"


def test_the_same_modifier_twice_has_parameters_of_its_own(mixer_of: MixerOf) -> None:
    mixer = mixer_of(TWICE + HOST.format("use twice on k, k"))
    assert {p.name for p in mixer.params} == {"W", "k_twice_w", "k_twice2_w"}
    assert definition(mixer, "k") == "k_twice2_w * k_before_twice_2 + k_before_twice_2[i-1]"


def test_an_input_keeps_its_name_and_everything_reads_the_modified_value(
    mixer_of: MixerOf,
) -> None:
    plus = "modifier plus on x { x = x + 1 }\n"
    mixer = mixer_of(TWICE + plus + HOST.format("use twice on u; use plus on u; z = u"))
    assert [t.name for t in mixer.inputs] == ["u"]
    assert definition(mixer, "u_twice") == "u_twice_w * u + u[i-1]"
    assert definition(mixer, "u_plus") == "u_twice + 1"
    assert definition(mixer, "k") == "W u_plus"


def test_in_its_own_modifier_a_name_is_the_value_so_far(mixer_of: MixerOf) -> None:
    gate = "modifier gated on x { x = x * silu(u) }\n"
    host = HOST.replace("W : d -> n; k = W u", "W : d; k = W * u")
    mixer = mixer_of(gate + host.format("use gated on u"))
    assert definition(mixer, "u_gated") == "u * silu(u)"
    shift = "modifier shift on x { x = x + k[i-1] }\n"
    mixer = mixer_of(shift + host.format("use shift on k"))
    assert definition(mixer, "k") == "k_before_shift + k_before_shift[i-1]"


def test_a_child_overrides_what_a_base_modifies(mixer_of: MixerOf) -> None:
    base = TWICE + HOST.format("use twice on k")
    mixer = mixer_of(base + "\nmixer child extends m { k = 2 * (W u) }".replace("(W u)", "W u"))
    assert definition(mixer, "k_before_twice") == "2 * W u"


def test_a_modifier_may_bring_definitions_functions_constants_and_states(
    mixer_of: MixerOf,
) -> None:
    average = """modifier smooth on x {
      dims t = 3
      const c = 1/2
      state s : x
      mix(a, b) = c * a + (1 - c) * b
      s = mix(s[i-1], x)
      x = s
    }
    """
    mixer = mixer_of(average + HOST.format("use smooth on k"))
    assert [s.name for s in mixer.states] == ["k_smooth_s"]
    known = sizes(mixer, {"d": 3, "n": 2})
    drawn = sample(mixer, known, seed=0, length=4)
    values = evaluate(mixer, drawn.inputs, drawn.params, known)
    state = np.zeros(2)
    for i in range(4):
        state = state / 2 + drawn.params["W"] @ drawn.inputs["u"][i] / 2
        assert np.allclose(values["y"][i], state)


def test_the_update_of_a_state_can_be_modified(mixer_of: MixerOf) -> None:
    mixer = mixer_of(
        "modifier damp on x { x = 0.5 * x }\n"
        "mixer m { dims d; input u : d; state s : d; s = s[i-1] + u; y = s; use damp on s }"
    )
    assert [s.name for s in mixer.states] == ["s"]
    known = sizes(mixer, {"d": 1})
    values = evaluate(mixer, {"u": np.ones((3, 1))}, {}, known)
    assert values["y"].ravel().tolist() == [0.5, 0.75, 0.875]


def test_axes_of_the_mixer_win_over_those_of_a_modifier(mixer_of: MixerOf) -> None:
    mixer = mixer_of("mixer m extends qkv { dims t = 2; use short_conv on q; y = q }")
    assert sizes(mixer, {"d": 8})["t"] == 2
    mixer = mixer_of("mixer m extends qkv { use short_conv on q; y = q }")
    assert sizes(mixer, {"d": 8})["t"] == 4


def test_what_cannot_be_used(problems: Problems) -> None:
    flow = "mixer m { dims d; input u : d; state x : d; x' = u by zoh(1); y = x; use twice on x }"
    cases = {
        TWICE + flow: "is given by a flow",
        "modifier no on x { param w : x }\n" + HOST.format("use no on k"): "does not define `x`",
        TWICE + "modifier no on x { use twice on x; x = x }\n" + HOST.format("use no on k"): "use",
        TWICE + HOST.format("use twice on W"): "not a definition",
    }
    for source, says in cases.items():
        (found,) = problems(source)
        assert found.code == "E-USE"
        assert says in found.message


def test_a_mistake_in_a_modifier_is_reported_once(problems: Problems) -> None:
    wrong = "modifier wrong on x { x = x + wnog }\n"
    found = problems(wrong + HOST.format("j2 = u; use wrong on k, j2"))
    assert [d.code for d in found] == ["E-UNKNOWN-NAME"]


def test_a_mistake_that_only_a_use_makes_shows_the_use(problems: Problems) -> None:
    text = (
        "modifier delayed on x { x = x[i-1] }\n"
        "mixer m { dims d; input u : d; state S : d; S = S[i-1] + u; y = S; use delayed on S }"
    )
    (found,) = problems(text)
    assert (found.code, found.span.text) == ("E-LAG", "x[i-1]")
    assert [(label.span.text, label.text) for label in found.labels] == [
        ("use delayed on S", "used here")
    ]


def test_circles_through_modifiers_name_what_the_mixer_calls_its_values(
    problems: Problems,
) -> None:
    text = "modifier more on x { x = x + y }\n" + HOST.format("use more on k")
    (found,) = problems(text)
    assert found.message.startswith("`k` reads its own value (k → y → k)")
