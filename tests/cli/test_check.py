"""`dsfc check`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsfc.claims import decide
from dsfc.cli import commands

RUNNING = """\
mixer running "a running sum" {
  dims d
  input u : d
  state s : d
  s = 1/2 * s[i-1] + u
  y = s
  claim stable
}
"""

THREE_MISTAKES = """\
mixer three {
  dims d, n
  input u : d
  param W_B : d -> n
  b = W_B x
  c = ones[m]
  e = u + W_B u
  y = u
}
"""

THREE_SLIPS = """\
mixer three {
  dims d d
  input u : d
  b = * u
  y = u )
}
"""


def test_a_spec_without_mistakes(run: Callable, spec: Callable) -> None:
    spec(RUNNING, "running.dsf")
    result = run("check", "running.dsf")
    assert result.exit_code == 0
    assert result.output == (
        "running.dsf: ok\n"
        "  running: scalar; compiles\n"
        "    proved stable: s: |λ| lies in [0.5, 0.5]\n"
        "1 spec, 0 errors, 1 claim proved\n"
    )


def test_three_mistakes_are_all_located(run: Callable, spec: Callable) -> None:
    spec(THREE_MISTAKES, "three.dsf")
    result = run("check", "--format", "short", "three.dsf")
    assert result.exit_code == 1
    assert [line.split(": ")[:3] for line in result.output.splitlines()] == [
        ["three.dsf:5:11", "error", "E-UNKNOWN-NAME"],
        ["three.dsf:6:12", "error", "E-AXIS"],
        ["three.dsf:7:7", "error", "E-SHAPE-ADD"],
    ]


def test_three_slips_of_writing_are_all_located(run: Callable, spec: Callable) -> None:
    spec(THREE_SLIPS, "three.dsf")
    result = run("check", "--format", "short", "three.dsf")
    assert [line.split(":")[1] for line in result.output.splitlines()] == ["2", "4", "5"]


def test_the_human_form_underlines(run: Callable, spec: Callable) -> None:
    spec(THREE_MISTAKES, "three.dsf")
    result = run("check", "three.dsf")
    assert "three.dsf: wrong" in result.output
    assert "  --> three.dsf:5:11\n  |\n5 |   b = W_B x\n  |           ^\n" in result.output
    assert result.output.endswith("1 spec, 3 errors\n")


def test_json_is_for_tools(run: Callable, spec: Callable) -> None:
    spec(RUNNING, "running.dsf")
    spec(THREE_MISTAKES, "three.dsf")
    result = run("check", "--format", "json", "running.dsf", "three.dsf")
    body = json.loads(result.output)
    good, bad = body["specs"]
    assert (body["format"], good["ok"], bad["ok"], result.exit_code) == (1, True, False, 1)
    assert good["mixers"][0]["name"] == "running" and good["mixers"][0]["class"] == "scalar"
    assert good["diagnostics"] == []
    (claim,) = good["mixers"][0]["claims"]
    assert claim == {"claim": "stable", "verdict": "proved", "by": "s: |λ| lies in [0.5, 0.5]"}
    assert [d["span"]["start"]["line"] for d in bad["diagnostics"]] == [5, 6, 7]


def test_every_mixer_of_a_text_is_checked(run: Callable, spec: Callable) -> None:
    spec(RUNNING + THREE_MISTAKES)
    result = run("check", "--format", "json", "mine.dsf")
    (only,) = json.loads(result.output)["specs"]
    assert [m["name"] for m in only["mixers"]] == ["running"]
    assert sum(d["severity"] == "error" for d in only["diagnostics"]) == 3


@pytest.mark.parametrize("name", ["s6", "qkv", "gate", "softmax"])
def test_shipped_specs_are_found_by_name(run: Callable, name: str) -> None:
    assert run("check", name).exit_code == 0


def test_a_base_without_output_is_no_mistake(run: Callable) -> None:
    assert (
        "qkv: it has no output: define `y = …`, or extend it in another mixer"
        in run("check", "qkv").output
    )


def test_what_this_version_cannot_compile_is_said(run: Callable) -> None:
    assert "separable: scalar; not supported yet" in run("check", "separable").output


PAIR = """mixer pair {
  dims d
  input u : d
  state s, t : d
  s = u * t[i-1] + u
  t = 1/2 * s[i-1]
  y = s + t
}
"""


def test_what_runs_token_by_token_only_is_said_with_the_reason(
    run: Callable, spec: Callable
) -> None:
    spec(PAIR, "pair.dsf")
    said = run("check", "pair.dsf")
    assert said.exit_code == 0
    why = "`s` and `t` read another state"
    assert f"compiles, recurrent only: {why}\n" in said.output
    (mixer,) = json.loads(run("check", "--format", "json", "pair.dsf").output)["specs"][0]["mixers"]
    assert (mixer["compiles"], mixer["recurrent_only"]) == (True, why)


def test_a_parallel_form_may_be_required(run: Callable, spec: Callable, folder: Path) -> None:
    spec(PAIR, "pair.dsf")
    for command in ("check", "compile"):
        refused = run(command, "--require-parallel", "--format", "short", "pair.dsf")
        assert refused.exit_code == 1
        (line,) = (refused.stdout + refused.stderr).splitlines()
        assert line.startswith("pair.dsf:5:3: error: E-RECURRENT-ONLY: pair runs one token")
    assert not (folder / "pair.py").exists()
    assert run("check", "--require-parallel", "s6").exit_code == 0
    assert run("compile", "--require-parallel", "s6").exit_code == 0


def test_a_note_about_a_base_names_its_file(run: Callable, spec: Callable) -> None:
    spec(RUNNING.replace("1/2", "abs(a) / (1 + abs(a))").replace("dims d", "dims d; param a"),
         "running.dsf")  # fmt: skip
    spec("mixer other extends running { y = 2 * s }\n", "other.dsf")
    assert "running.dsf:7:3: claim `stable` is not decided" in run("check", "other.dsf").output


GROWING = RUNNING.replace("1/2", "2")
OPEN = RUNNING.replace("1/2", "abs(a) / (1 + abs(a))").replace("dims d", "dims d; param a")


def test_a_refuted_claim_is_an_error_with_its_point(run: Callable, spec: Callable) -> None:
    spec(GROWING, "running.dsf")
    result = run("check", "running.dsf")
    assert result.exit_code == 1
    assert "error[E-CLAIM]: claim `stable` is refuted: Λ at token 0 takes" in result.output
    assert "squared length 4\n  --> running.dsf:7:3" in result.output
    assert "the point: 1 token, d = 1; u = 0" in result.output
    assert result.output.endswith("1 spec, 1 error\n")


def test_an_open_claim_fails_only_when_verdicts_are_asked_for(
    run: Callable, spec: Callable
) -> None:
    spec(OPEN, "running.dsf")
    result = run("check", "running.dsf")
    assert result.exit_code == 0
    assert result.output.endswith("1 spec, 0 errors, 1 claim not decided\n")
    strict = run("check", "--strict", "--format", "json", "running.dsf")
    assert strict.exit_code == 1
    (only,) = json.loads(strict.output)["specs"]
    assert [d["code"] for d in only["diagnostics"]] == ["E-CLAIM-OPEN"]
    assert only["mixers"][0]["claims"][0]["verdict"] == "unknown"


def test_show_says_what_is_known_of_claims(run: Callable, spec: Callable) -> None:
    spec(OPEN.replace("claim stable", "claim stable; claim causal; claim decay(s) == 0"), "s.dsf")
    lines = run("show", "s.dsf", "--form", "index").output.splitlines()
    said = lines[lines.index("claims", lines.index("structure of running")) + 1 :]
    assert [line.split(":")[0].strip() for line in said] == [
        "not decided  stable", "proved       causal", "refuted      decay(s) == 0",
        said[3].split(":")[0].strip(),
    ]  # fmt: skip
    assert said[3].startswith("    point      1 token")


def test_several_files_go_on_after_a_wrong_one(run: Callable, spec: Callable) -> None:
    spec(THREE_SLIPS, "three.dsf")
    result = run("check", "three.dsf", "none.dsf", "s6")
    assert result.exit_code == 1
    assert result.output.endswith("3 specs, 4 errors, 1 claim proved\n")


def test_the_specs_of_the_user_come_first(run: Callable, spec: Callable) -> None:
    spec(RUNNING, "s6")
    assert "  running: scalar" in run("check", "s6").output


def test_bases_stand_beside_the_spec(run: Callable, spec: Callable, folder: Path) -> None:
    spec(RUNNING, "running.dsf")
    spec("mixer other extends running { s = 1/3 * s[i-1] + u }\n", "other.dsf")
    (folder / "elsewhere").mkdir()
    assert run("check", "other.dsf").exit_code == 0
    assert run("check", str(folder / "other.dsf")).exit_code == 0


def test_a_text_cannot_steer_the_terminal(run: Callable, spec: Callable) -> None:
    spec("mixer m {\n  dims d\n  input u : d\n  y = u \x1b]0;owned\x07\n}\n")
    result = run("check", "mine.dsf")
    assert result.exit_code == 1
    assert "\x1b]0" not in result.output and "\x07" not in result.output


def test_sarif_has_all_specs_in_one_run(run: Callable, spec: Callable) -> None:
    spec(THREE_MISTAKES, "three.dsf")
    spec(RUNNING, "running.dsf")
    result = run("check", "--format", "sarif", "three.dsf", "running.dsf", "none.dsf")
    (only,) = json.loads(result.output)["runs"]
    files = [r["locations"][0]["physicalLocation"]["artifactLocation"] for r in only["results"]]
    assert result.exit_code == 1
    assert [file["uri"] for file in files] == [*["three.dsf"] * 3, "none.dsf"]


def test_a_text_on_standard_input_has_its_bases_in_the_current_folder(spec: Callable) -> None:
    spec("mixer base {\n  dims d\n  input u : d\n  y = u\n}\n", "base.dsf")
    text = "mixer top extends base {\n  y = 2 * u\n}\n"
    checked = CliRunner().invoke(commands, ["check", "-"], input=text)
    assert checked.exit_code == 0 and "top: fir; compiles" in checked.output
    shown = CliRunner().invoke(commands, ["show", "--form", "index", "-"], input=text)
    assert "y : d = 2 * u" in shown.output
    wrong = CliRunner().invoke(commands, ["check", "--format", "short", "-"], input=text + "}")
    assert wrong.exit_code == 1 and wrong.output.startswith("<stdin>:4:1: error: E-SYNTAX")


def test_tools_may_ask_for_exit_code_0(run: Callable, spec: Callable) -> None:
    spec("mixer m {\n", "wrong.dsf")
    result = run("check", "wrong.dsf", "--exit-zero", "--format", "sarif")
    assert result.exit_code == 0 and "E-SYNTAX" in result.stdout


def test_an_illegal_character_hides_no_other_mistake(run: Callable, spec: Callable) -> None:
    spec(
        "mixer m {\n  dims d, n\n  input u : d\n  param W : d -> n\n"
        "  k = W @ u\n  y = foo(k)\n  z = nothing + 1\n}\n",
        "m.dsf",
    )
    lines = run("check", "--format", "short", "m.dsf").output.splitlines()
    assert [line.split(": ")[0:3:2] for line in lines] == [
        ["m.dsf:5:9", "E-CHAR"], ["m.dsf:6:7", "E-UNKNOWN-NAME"], ["m.dsf:7:7", "E-UNKNOWN-NAME"],
    ]  # fmt: skip


def test_what_a_repaired_line_may_mean_is_not_told(run: Callable, spec: Callable) -> None:
    """`@` is read as `·`, which `q` and `v` do not have: only the character is at fault."""
    spec("mixer m extends qkv {\n  a = q @ v\n  y = sum[n](q * k)\n}\n", "m.dsf")
    lines = run("check", "--format", "short", "m.dsf").output.splitlines()
    assert len(lines) == 1 and "E-CHAR" in lines[0]


CLAIMING = """
mixer plain {
  input u
  y = u
}
mixer claiming {
  input u
  y = u + u
  claim causal
  claim equivalent plain
}
"""


@pytest.mark.ci
def test_claims_that_were_decided_are_printed_when_time_is_up(
    run: Callable, spec: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: object) -> None:
        while True:
            pass

    path = spec(CLAIMING, "claiming.dsf")
    run("check", str(path))  # what is imported once does not count
    monkeypatch.setattr(decide, "same", endless)
    found = run("check", str(path), "--timeout", "1")
    assert found.exit_code == 1 and "proved causal" in found.output
    assert "time to check" in found.output and "`--timeout SECONDS` allows more" in found.output


def test_a_folder_is_all_specs_below_it(run: Callable, spec: Callable, folder: Path) -> None:
    (folder / "mixers" / "deep").mkdir(parents=True)
    spec("mixer a { dims d; input u : d; y = u }", "mixers/b.dsf")
    spec("mixer a { dims d; input u : d; y = x }", "mixers/deep/a.dsf")
    spec("mixer a {", "mixers/notes.txt")
    result = run("check", "mixers", "mixers/b.dsf")
    assert result.exit_code == 1 and "2 specs, 1 error" in result.output
    assert "mixers/b.dsf: ok" in result.output and "mixers/deep/a.dsf: wrong" in result.output
    (folder / "empty").mkdir()
    none = run("check", "empty")
    assert none.exit_code == 1 and "empty: no .dsf file in this folder" in none.output
    (folder / "gla").mkdir()
    assert "gla: ok" in run("check", "gla").output


@pytest.mark.parametrize(
    ("output", "kept"), [("q * S", True), ("q · S", False), ("sum[n](q * S)", False)]
)
def test_an_output_with_the_axes_of_a_state_is_noted(
    run: Callable, spec: Callable, output: str, kept: bool
) -> None:
    spec(f"mixer m extends qkv {{ state S : h × n × p\n S = S[i-1] + k ⊗ v\n y = {output} }}")
    result = run("check", "mine.dsf")
    assert result.exit_code == 0
    assert ("`y` has the axes {h,n,p}, all those of the state `S`" in result.output) == kept


@pytest.mark.parametrize(("body", "idle"), [("k · q * v", True), ("v[j]", False), ("1", False)])
def test_a_sum_that_reads_nothing_at_its_index_is_noted(
    run: Callable, spec: Callable, body: str, idle: bool
) -> None:
    spec(f"mixer m extends qkv {{ y = v * sum[n](k) + sum[j ≤ i]({body}) * v }}")
    result = run("check", "mine.dsf")
    assert result.exit_code == 0, result.output
    assert ("nothing in this sum is read at token `j`" in result.output) == idle
