"""Letters of papers: given to names that there are, in a mixer, its bases and its modifiers."""

from __future__ import annotations

import pytest

CITED = 'paper "Gu, Dao", 2023, "Mamba",\n letters {} "h"'
MIXER = """mixer base {{
  {}
  dims d, n
  input u : d
  param W : d -> n
  const P = 2
  φ(x) = P * x
  state S : n
  S = φ(S[i-1]) / 4 + W u
  y = S
}}"""


@pytest.mark.parametrize("name", ["d", "n", "u", "W", "P", "phi", "φ", "S", "y", "i"])
def test_names_axes_and_the_token_have_letters(mixer_of, problems, name: str) -> None:
    text = MIXER.format(CITED.format(name))
    assert problems(text) == ()
    (letter,) = mixer_of(text).papers[0].letters
    assert letter.latex == "h" and letter.name == {"φ": "phi"}.get(name, name)


@pytest.mark.parametrize(("name", "meant"), [("s", None), ("j", None), ("x", None), ("PP", None)])
def test_what_is_no_name_is_told_where_it_stands(problems, name: str, meant: str | None) -> None:
    (problem,) = problems(MIXER.format(CITED.format(name)))
    assert problem.code == "E-UNKNOWN-NAME" and problem.span.text == name
    assert problem.span.line == 3
    assert "a letter of a paper is given to a name of the mixer, an axis or `i`" in str(problem)


def test_a_near_name_is_suggested(problems) -> None:
    text = MIXER.format(CITED.format("gaet")).replace("y = S", "gate = sigmoid(S)\n  y = gate * S")
    (problem,) = problems(text)
    assert "did you mean `gate`?" in str(problem)


def test_names_of_bases_have_letters_and_papers_of_bases_are_theirs(mixer_of, problems) -> None:
    base = MIXER.format(CITED.format("S"))
    heir = f"{base}\nmixer top extends base {{\n {CITED.format('W')}\n y = S + u · W u\n}}"
    assert mixer_of(heir.replace(" + u · W u", "")).papers[0].letters[0].name == "W"
    (problem,) = problems(f"{base}\nmixer top extends base {{\n {CITED.format('V')}\n}}")
    assert problem.span.text == "V"


def test_a_base_that_is_not_there_hides_what_its_names_are(problems) -> None:
    text = f"mixer top extends nowhere {{\n {CITED.format('V')}\n y = V\n}}"
    assert [problem.code for problem in problems(text)] == ["E-BASE"]


@pytest.mark.parametrize(
    ("name", "codes"), [("x", []), ("w", []), ("t", []), ("S", ["E-UNKNOWN-NAME"])]
)
def test_letters_of_a_modifier_are_of_its_own_names(problems, name: str, codes: list[str]) -> None:
    modifier = (
        f"modifier m on x {{\n {CITED.format(name)}\n dims t = 4\n param w : x\n x = w * x\n}}"
    )
    mixer = MIXER.format("use m on u")
    assert [problem.code for problem in problems(f"{modifier}\n{mixer}")] == codes
