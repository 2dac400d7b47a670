"""`extends`: what an override replaces, what is kept, what is dropped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dsfc.diagnostics.report import Diagnostic
from dsfc.mixer import Library
from dsfc.mixer.ir import Mixer, Rewrite

MixerOf = Callable[..., Mixer]
Problems = Callable[..., tuple[Diagnostic, ...]]

BASE = """mixer base {
  dims d, n
  input u, g : d
  param W : d -> n; a : d
  const P = 2
  f(x) = P * x
  k = f(u) * g
  y = k + a
}
"""


def names(items: tuple) -> list[str]:
    return [item.name for item in items]


def test_a_definition_replaces_one_and_what_it_no_longer_reads_is_dropped(
    mixer_of: MixerOf,
) -> None:
    mixer = mixer_of(BASE + "mixer m extends base { k = u }")
    assert names(mixer.inputs) == ["u"]
    assert names(mixer.params) == ["a"]
    assert [d.axis.name for d in mixer.axes] == ["d"]
    assert mixer.rewrites == (
        Rewrite("extends", "base", "m"),
        Rewrite("override", "k", "m"),
    )


def test_papers_are_those_of_the_text_itself(mixer_of: MixerOf) -> None:
    cited = BASE.replace(
        "  dims", '  paper "A", 2020, "T"\n  paper "B", 2021, "U"  "eq. 1"\n  dims'
    )
    named = [(p.short, p.place) for p in mixer_of(cited).papers]
    assert named == [("A 2020", None), ("B 2021", "eq. 1")]
    assert mixer_of(cited + "mixer m extends base { k = u }").papers == ()
    own = mixer_of(cited + 'mixer m extends base { k = u; paper "C", 2022, "V" }')
    assert [p.short for p in own.papers] == ["C 2022"]


def test_constants_and_functions_are_replaced_where_they_are_used(mixer_of: MixerOf) -> None:
    old = mixer_of(BASE)
    constant = mixer_of(BASE + "mixer m extends base { const P = 3 }")
    function = mixer_of(BASE + "mixer m extends base { f(z) = 3 * z }")
    old_values, constant_values, function_values = (
        [d.value for d in mixer.definitions] for mixer in (old, constant, function)
    )
    assert constant_values == function_values != old_values


def test_a_definition_takes_the_place_of_an_input(mixer_of: MixerOf) -> None:
    mixer = mixer_of(BASE + "mixer m extends base { g = exp(u) }")
    assert names(mixer.inputs) == ["u"]
    assert Rewrite("override", "g", "m") in mixer.rewrites


def test_a_declaration_takes_the_place_of_a_definition(mixer_of: MixerOf) -> None:
    mixer = mixer_of(BASE + "mixer m extends base { input k : d }")
    assert names(mixer.inputs) == ["k"]


def test_a_declaration_is_replaced_with_its_shape(mixer_of: MixerOf) -> None:
    mixer = mixer_of(BASE + "mixer m extends base { param a : d positive }")
    (a,) = mixer.params
    assert a.constraint.value == "positive"


def test_a_state_update_is_replaced_and_the_declaration_kept(
    mixer_of: MixerOf, shipped: Callable[[str], Mixer]
) -> None:
    mixer = mixer_of("mixer m extends ssd { S = S[i-1] + b ⊗ x }")
    assert mixer.states[0].axes == shipped("ssd").states[0].axes
    assert "Delta" not in names(mixer.definitions)


def test_a_definition_becomes_the_update_of_a_state(mixer_of: MixerOf) -> None:
    mixer = mixer_of(
        "mixer base { dims d; input u : d; y = u }\n"
        "mixer m extends base { state y : d; y = 0.5 * y[i-1] + u }"
    )
    assert names(mixer.states) == ["y"]
    assert not mixer.definitions


def test_dims_are_replaced_in_place(mixer_of: MixerOf) -> None:
    mixer = mixer_of("mixer m extends qkv { dims n; y = q }")
    assert [(d.axis.name, d.size is None) for d in mixer.axes] == [
        ("d", True),
        ("h", False),
        ("n", True),
    ]


def test_what_an_override_made_meaningless_is_not_looked_at(mixer_of: MixerOf) -> None:
    text = BASE + "mixer m extends base { input u : n; k = u; param a : n }"
    assert names(mixer_of(text).inputs) == ["u"]


def test_claims_of_bases_are_carried_along(shipped: Callable[[str], Mixer]) -> None:
    assert "causal" in [c.text for c in shipped("linear_attn").claims]


def test_the_last_mixer_of_a_text_is_meant_unless_another_is_named(mixer_of: MixerOf) -> None:
    text = BASE + "mixer m extends base { k = u }"
    assert mixer_of(text).name == "m"
    assert mixer_of(text, "base").name == "base"


def test_a_mixer_that_is_not_there(mixer_of: MixerOf, problems: Problems) -> None:
    (found,) = problems("modifier m on x { x = 2 * x }")
    assert found.code == "E-MIXER"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mixer a extends a { y = q }", "a → a"),
        ("mixer a extends b { y = q }\nmixer b extends a { y = q }", "b → a → b"),
    ],
)
def test_a_mixer_cannot_extend_itself(text: str, says: str, problems: Problems) -> None:
    (found,) = problems(text)
    assert found.code == "E-BASE"
    assert says in found.message


def test_chains_of_bases_are_bounded(problems: Problems) -> None:
    text = BASE + "mixer m0 extends base { }\n"
    text += "\n".join(f"mixer m{k + 1} extends m{k} {{ }}" for k in range(12))
    (found,) = problems(text)
    assert found.code == "E-BASE"
    assert "more than 8" in found.message


def test_the_order_of_definitions_means_nothing(mixer_of: MixerOf) -> None:
    one = "dims d; input u : d; param a : d; b = exp(a); k = b * u; y = k + b"
    other = "y = k + b; k = b * u; input u : d; b = exp(a); param a : d; dims d"
    left, right = (mixer_of(f"mixer m {{ {items} }}") for items in (one, other))
    assert left.definitions == tuple(
        replace(d, span=left.definition(d.name).span) for d in right.definitions
    )


def test_a_base_is_found_beside_the_file_then_in_the_library(
    tmp_path: Path, mixer_of: MixerOf
) -> None:
    (tmp_path / "near.dsf").write_text("mixer near { dims d; input u : d; y = 3 * u }")
    library = Library(tmp_path)
    assert mixer_of("mixer m extends near { }", None, library).name == "m"
    assert mixer_of("mixer m extends qkv { y = q }", None, library).name == "m"
    assert mixer_of("mixer m extends near { }\nmixer near { dims e; input w : e; y = w }", "m",
                    library).inputs[0].name == "w"  # fmt: skip


def test_a_shipped_base_never_reads_a_file_of_the_user(tmp_path: Path, mixer_of: MixerOf) -> None:
    (tmp_path / "qkv.dsf").write_text("mixer qkv { dims d; input u : d; y = u }")
    mixer = mixer_of("mixer m extends softmax { }", None, Library(tmp_path))
    assert {p.name for p in mixer.params} == {"W_Q", "W_K", "W_V"}


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path, problems: Problems) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "away.dsf").write_text("mixer away { dims d; input u : d; y = u }")
    (tmp_path / "inside" / "away.dsf").symlink_to(tmp_path / "away.dsf")
    (found,) = problems("mixer m extends away { }", Library(tmp_path / "inside"))
    assert found.code == "E-BASE"


def test_mistakes_in_a_base_are_reported_in_its_file(tmp_path: Path, problems: Problems) -> None:
    (tmp_path / "near.dsf").write_text("mixer near { dims d; input u : d; y = 3 * }")
    (found,) = problems("mixer m extends near { }", Library(tmp_path))
    assert found.code == "E-SYNTAX"
    assert found.span.source.name.endswith("near.dsf")


def test_of_two_declarations_in_one_text_the_first_is_read_on(problems: Problems) -> None:
    found = problems(
        "mixer m { dims d; input u : d; param W : d -> d; u : d\n v = W u\n"
        " y = sum[j < i](v[j]) + u }"
    )
    assert [problem.code for problem in found] == ["E-NAME"]  # v is not said to have no time
