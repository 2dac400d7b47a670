"""`dsfc equiv` and `dsfc check-proof`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from dsfc.api.decide import claims
from dsfc.api.pipeline import load, read
from dsfc.claims.verdict import Proved
from dsfc.expr.build import ones
from dsfc.prover import equivalent, subsumes
from dsfc.prover.verdict import Unknown
from dsfc.system.ir import Direct, System
from dsfc.trusted.check import write
from dsfc.trusted.claim import Certificate, Claim, Invariant

TWO = """
mixer a { dims n
  input u : n
  param w : n
  state h : n
  h = w * h[i-1] + u
  y = h
}
mixer b { dims n
  input u : n
  param w, g : n
  state h : n
  h = w * h[i-1] + {drive}
  y = h
}
"""


SIZED = """
mixer a {{ dims heads h = {heads}, d, n = d / h
  input u : h × n
  state s : h × n
  s = (1 - 2^(-5 - iota[h])) * s[i-1] + u
  y = s
}}
mixer b {{ dims heads h = {heads}, d, n = d / h
  input u : h × n
  state s : h × n
  s = ({decay}) * s[i-1] + u
  y = s
}}
"""


@pytest.mark.ci
def test_a_proof_at_some_sizes_has_an_exit_code_of_its_own(
    run: Callable, spec: Callable, folder: Path
) -> None:
    path = spec(SIZED.format(heads=4, decay="31/32 + iota[h] / 64"))
    a, b = f"{path}:a", f"{path}:b"
    assert run("equiv", a, b).exit_code == 4
    asked = run("equiv", a, b, "--size", "h=2,n=3", "--certificate", "proof.json")
    assert asked.exit_code == 7 and asked.output.startswith("a = b: proved for h = 2 alone\n")
    accepted = run("check-proof", "proof.json", a, b)
    assert "equal outputs, for all d, n, for h = 2 alone" in accepted.output
    document = json.loads(run("equiv", a, b, "--size", "h=2", "--format", "json").output)
    assert document["verdict"] == "proved at sizes" and document["sizes"]["h"] == 2
    same = spec(SIZED.format(heads=4, decay="1 - 1 / 2^(iota[h] + 5)"), "same.dsf")
    declared = run("equiv", f"{same}:a", f"{same}:b")
    assert declared.exit_code == 7 and "for h = 4 alone" in declared.output
    text = Path("proof.json").read_text(encoding="utf-8")
    Path("forged.json").write_text(text.replace('["h",2]', '["h",4]'), encoding="utf-8")
    assert run("check-proof", "forged.json").exit_code == 1


@pytest.mark.parametrize(
    "asked, why",
    [
        ("h=3,n=2,d=7", "no sizes keep n = d / h"),
        ("q=3", "neither of the two has an axis q"),
        ("h=0", "with whole numbers from 1"),
        ("h=257", "h = 257 is not an integer from 1 to 256"),
        ("h", "--size wants AXIS=SIZE"),
        ("h=two", "--size wants AXIS=SIZE"),
        ("h=2,h=3", "--size gives two sizes of h"),
    ],
)
def test_sizes_that_cannot_be_are_a_wrong_command_line(
    run: Callable, spec: Callable, asked: str, why: str
) -> None:
    path = spec(SIZED.format(heads=4, decay="31/32"))
    found = run("equiv", f"{path}:a", f"{path}:b", "--size", asked)
    assert found.exit_code == 2 and why in found.output + found.stderr


BACK = """
mixer a { dims n
  input u : n
  y = sum[j ≥ i](u[j] + u[j]^2)
}
mixer b { dims n
  input u : n
  y = sum[j ≥ i](u[j]) + sum[j ≥ i](u[j]^2)
}
"""


def test_proved_refuted_and_unknown_have_their_exit_codes(run: Callable, spec: Callable) -> None:
    same = spec(TWO.replace("{drive}", "1 * u"))
    proved = run("equiv", f"{same}:a", f"{same}:b")
    assert proved.exit_code == 0 and proved.output.startswith("a = b: proved\n")
    other = spec(TWO.replace("{drive}", "g * u"), "other.dsf")
    refuted = run("equiv", f"{other}:a", f"{other}:b")
    assert refuted.exit_code == 4 and "refuted" in refuted.output
    back = spec(BACK, "back.dsf")
    unknown = run("equiv", f"{back}:a", f"{back}:b")
    assert unknown.exit_code == 5 and "obstacle" in unknown.output


SCALED = """mixer a {
  input u
  param g positive
  state s
  s = s[i-1] / 2 + u
  y = s
}
mixer b {
  input u
  param g positive
  state s
  s = s[i-1] / 2 + g * u
  y = s / g
}
"""


@pytest.mark.ci
def test_an_accepted_proof_is_written_as_lean(run: Callable, spec: Callable, folder: Path) -> None:
    path = spec(SCALED)
    run("equiv", f"{path}:a", f"{path}:b", "--certificate", "proof.json")
    done = run("check-proof", "proof.json", "--lean", "proof.lean")
    assert done.exit_code == 0 and "written: proof.lean" in done.stderr
    text = Path("proof.lean").read_text(encoding="utf-8")
    assert "mixers a (A) and b (B)" in text and "theorem outputs (R : Run K)" in text
    again = run("check-proof", "proof.json", "--lean", "proof.lean")
    assert again.exit_code == 2 and "exists already" in again.output
    other = spec(TWO.replace("{drive}", "g * u"), "other.dsf")
    run("equiv", f"{other}:a", f"{other}:b", "--certificate", "point.json")
    point = run("check-proof", "point.json", "--lean", "point.lean")
    assert point.exit_code == 0 and "not written: point.lean: only a proof" in point.stderr
    assert not Path("point.lean").exists()
    Path("bad.json").write_text("{}", encoding="utf-8")
    assert run("check-proof", "bad.json", "--lean", "bad.lean").exit_code == 1
    assert not Path("bad.lean").exists()


def test_a_certificate_is_checked_against_its_specs(
    run: Callable, spec: Callable, folder: Path
) -> None:
    path = spec(TWO.replace("{drive}", "1 * u"))
    a, b = f"{path}:a", f"{path}:b"
    assert run("equiv", a, b, "--certificate", "proof.json").exit_code == 0
    assert run("check-proof", "proof.json").output.startswith("accepted: a and b, equal")
    assert run("check-proof", "proof.json", a, b).exit_code == 0
    swapped = run("check-proof", "proof.json", b, a)
    assert swapped.exit_code == 1 and "not that of" in swapped.output
    text = Path("proof.json").read_text(encoding="utf-8")
    Path("bad.json").write_text(text.replace('"equal":true', '"equal":false'), encoding="utf-8")
    spoiled = run("check-proof", "bad.json")
    assert spoiled.exit_code == 1 and spoiled.output.startswith("rejected: ")
    os.mkfifo("pipe.json")
    unread = run("check-proof", "pipe.json")
    assert unread.exit_code == 1 and "E-FILE" in unread.output + unread.stderr
    older = '{"format":"dsfc-proof/1"' + text[text.index(",") :]
    Path("old.json").write_text(older, encoding="utf-8")
    refused = run("check-proof", "old.json")
    assert refused.exit_code == 1 and "E-CERTIFICATE" in refused.output + refused.stderr
    assert run("equiv", a, b, "--certificate", "proof.json").exit_code == 2


def test_one_that_has_no_value_where_the_other_has_is_said(run: Callable, spec: Callable) -> None:
    path = spec(TWO.replace("{drive}", "g / g * u"))
    found = run("equiv", f"{path}:a", f"{path}:b")
    assert found.exit_code == 6
    assert found.output.startswith("a = b: proved where both have values\n")
    assert "  apart      b has no value, and a has one, at\n" in found.output
    out = json.loads(run("equiv", f"{path}:b", f"{path}:a", "--format", "json").output)
    assert out["verdict"] == "proved where both have values" and out["without_value"] == "first"


def test_what_was_shown_is_printed(run: Callable, spec: Callable, folder: Path) -> None:
    path = spec(TWO.replace("{drive}", "g * u").replace("param w, g", "param r, g").replace(
        "w * h[i-1] + g", "r * h[i-1] + g"))  # fmt: skip
    a, b = f"{path}:a", f"{path}:b"
    assert run("equiv", a, b, "--map", "r=w", "--conditions", "--certificate", "p").exit_code == 6
    accepted = run("check-proof", "p", a, b).output.splitlines()
    assert "  names      the second reads w for r" in accepted
    assert accepted[accepted.index("  conditions") + 1] == "    g[n] = 1"
    assert "  sizes      shown at n = 2" in accepted and f"  specs      {a} and {b}" in accepted
    alone = run("check-proof", "p").output
    assert "named as in the certificate; give both to compare" in alone


def hollow(system: System) -> System:
    """The definition of a mixer beside a derived form whose output is 1."""
    out = system.outputs[0]
    one = replace(out, value=Direct(ones(frozenset(out.axes))))
    return replace(system, streams=(), stages=(), outputs=(one,))


def test_systems_that_are_not_those_of_the_definitions_are_rejected(
    run: Callable, spec: Callable, folder: Path
) -> None:
    """True definitions beside systems whose output is 1."""
    path = spec(TWO.replace("{drive}", "g * u"))
    a, b = (hollow(load(path, mixer=name).system) for name in "ab")
    forged = Certificate(Claim(a, b, (), (("n", 1),), every=("n",)), Invariant((), False))
    Path("forged.json").write_text(write(forged), encoding="utf-8")
    refused = run("check-proof", "forged.json")
    assert refused.exit_code == 1
    assert refused.output == "rejected: the derived form of a is not that of its definition\n"


def test_a_certificate_is_not_read_whole_if_it_is_too_large(run: Callable, folder: Path) -> None:
    with Path("large.json").open("wb") as file:
        file.truncate(2**40)
    refused = run("check-proof", "large.json")
    assert refused.exit_code == 1
    assert "error[E-LIMIT]: bytes of the certificate" in refused.output
    assert "--> large.json" in refused.output


def test_conditions_are_looked_for_where_asked(run: Callable, spec: Callable, folder: Path) -> None:
    path = spec(TWO.replace("{drive}", "g * u"))
    found = run("equiv", f"{path}:a", f"{path}:b", "--conditions", "--certificate", "proof.json")
    assert found.exit_code == 6
    first, second, *_ = found.output.splitlines()
    assert first.startswith("a = b: the first is a case of the second; equal where")
    assert second == "  verdict    proved under conditions"
    assert "    g[n] = 1\n" in found.output and "  case       a is b with" in found.output
    accepted = run("check-proof", "proof.json", f"{path}:a", f"{path}:b")
    assert accepted.exit_code == 0
    assert "under 2 conditions, the first a case of the second" in accepted.output
    document = json.loads(
        run("equiv", f"{path}:a", f"{path}:b", "--conditions", "--format", "json").output
    )
    assert document["verdict"] == "proved under conditions" and document["case"]
    assert document["conditions"] == [{"text": "g[n] = 1", "needed": True, "forced": False}]


CASES = """
mixer keeps { dims n
  input u : n
  y = sum[j ≤ i](u[j])
}
mixer forgets { dims n
  input u : n
  param s : n positive
  y = sum[j ≤ i](exp(-s)^(i-j) * u[j])
}
mixer weighs { dims n
  input u : n
  param w : n
  y = sum[j ≤ i](w * u[j])
}
"""


def test_each_statement_has_its_own_line(run: Callable, spec: Callable, folder: Path) -> None:
    path = spec(CASES)
    asked = "equiv", f"{path}:keeps", f"{path}:forgets", "--explain"
    found = run(*asked, "--case-certificate", "case.json")
    assert found.exit_code == 4 and found.output.startswith("keeps = forgets: refuted\n")
    assert "\nISO  each is a case of the other: refuted\n" in found.output
    assert "\nSUB  keeps is a case of forgets: refuted, for no parameters\n" in found.output
    assert "  sizes      n = 1 and all larger" in found.output
    assert "powers of 1\n" in found.output and "lie in (0, 1)\n" in found.output
    assert "  exceptions " in found.output
    accepted = run("check-proof", "case.json", f"{path}:keeps", f"{path}:forgets")
    assert accepted.exit_code == 0
    assert accepted.output.startswith("accepted: keeps is no case of forgets, for no parameters")
    text = Path("case.json").read_text(encoding="utf-8")
    Path("bad.json").write_text(text.replace('"case":true', '"case":false'), encoding="utf-8")
    assert run("check-proof", "bad.json").exit_code == 1


def test_verdict_and_witness_come_first_and_the_rest_when_asked(
    run: Callable, spec: Callable
) -> None:
    path = spec(CASES)
    args = ("equiv", f"{path}:keeps", f"{path}:forgets")
    short, long = run(*args).output, run(*args, "--explain").output
    assert short.startswith("keeps = forgets: refuted\n  sizes ")
    assert "  output     token " in short and "statement" not in short
    *told, more = short[short.index("ISO  ") :].splitlines()
    verdicts = [line for line in told if not line.startswith("  sizes ")]
    assert [line[:5] for line in verdicts] == ["ISO  ", "SUB  ", "SUB  "]
    assert len(told) > len(verdicts)  # a refutation holds at the sizes that it names
    assert more == "--explain prints what shows this"
    assert "  statement  equal outputs" in long and "  sequence" in long and more not in long
    assert len(short.splitlines()) < len(long.splitlines()) * 2 / 3


@pytest.mark.ci
def test_a_case_is_shown_by_conditions(run: Callable, spec: Callable, folder: Path) -> None:
    path = spec(CASES)
    args = ("equiv", f"{path}:keeps", f"{path}:weighs", "--conditions")
    found = run(*args, "--explain")
    assert found.exit_code == 6
    assert "\nSUB  keeps is a case of weighs: proved for " in found.output
    assert "\nSUB  weighs is a case of keeps: refuted, for no parameters\n" in found.output
    assert "  sequences  " in found.output and "    token a: u = " in found.output
    document = json.loads(run(*args, "--format", "json").output)
    assert document["SUB"]["verdict"] == "proved"
    assert document["SUB exchanged"]["verdict"] == document["ISO"]["verdict"] == "refuted"
    assert document["SUB exchanged"]["sequences"] and document["SUB exchanged"]["letters"]
    other = f"{path}:weighs", f"{path}:keeps"
    assert run("equiv", *other, "--case-certificate", "sequences.json").exit_code == 4
    assert run("check-proof", "sequences.json", *other).output.startswith(
        "accepted: weighs is no case"
    )
    same = run("equiv", f"{path}:keeps", f"{path}:keeps")
    assert same.exit_code == 0 and "SUB" not in same.output


@pytest.mark.ci
def test_a_refutation_is_a_program(run: Callable, spec: Callable, folder: Path) -> None:
    path = spec(TWO.replace("{drive}", "g * u"))
    assert run("equiv", f"{path}:a", f"{path}:b", "--replay", "replay.py").exit_code == 4
    done = subprocess.run([sys.executable, "-I", "replay.py"], capture_output=True, text=True)
    assert done.returncode == 0 and "token 0" in done.stdout


@pytest.mark.ci
def test_json_and_names(run: Callable, spec: Callable) -> None:
    path = spec(TWO.replace("{drive}", "g / g * u").replace("param w, g", "param r, g").replace(
        "w * h[i-1] + g", "r * h[i-1] + g"))  # fmt: skip
    out = run("equiv", f"{path}:a", f"{path}:b", "--map", "r=w", "--format", "json")
    assert json.loads(out.output)["verdict"] == "proved where both have values"
    without = run("equiv", f"{path}:a", f"{path}:b", "--format", "json")
    assert json.loads(without.output)["verdict"] == "refuted"


@pytest.mark.parametrize(
    "args",
    [
        ["equiv", "s6"],
        ["equiv", "s6", "s6", "--map", "x"],
        ["equiv", "s6", "s6", "--map", "=x"],
        ["equiv", "s6", "s6", "--map", "w=u"],
        ["equiv", "s6", "s6", "--map", "u=w"],
        ["check-proof", "nowhere.json"],
    ],
)
def test_wrong_usage(run: Callable, args: list[str]) -> None:
    assert run(*args).exit_code == 2


def test_a_map_takes_greek_names_and_says_which_there_are(run: Callable, spec: Callable) -> None:
    text = """mixer a { dims d
  input u : d;  param λ : d
  y = λ * u }
mixer b { dims d
  input u : d;  param κ : d
  y = κ * u }
"""
    path = spec(text)
    assert run("equiv", f"{path}:a", f"{path}:b", "--map", "κ=λ").exit_code == 0
    wrong = run("equiv", f"{path}:a", f"{path}:b", "--map", "μ=λ")
    told = " ".join((wrong.output + wrong.stderr).split())
    assert wrong.exit_code == 2
    assert "b has no input, parameter or buffer mu; it has u, kappa" in told


def test_a_certificate_is_text_of_two_specs_or_none(
    run: Callable, spec: Callable, folder: Path
) -> None:
    path = spec(TWO.replace("{drive}", "1 * u"))
    assert run("equiv", f"{path}:a", f"{path}:b", "--certificate", "proof.json").exit_code == 0
    one = run("check-proof", "proof.json", f"{path}:a")
    assert one.exit_code == 2 and "give both specs, or none" in one.output
    Path("image.json").write_bytes(b"\xff\xfe")
    image = run("check-proof", "image.json")
    assert image.exit_code == 2 and "image.json is not text" in image.output


def test_mistakes_in_a_spec_are_diagnostics(run: Callable) -> None:
    result = run("equiv", "lstm", "s6")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[" in result.stderr


@pytest.mark.parametrize("option", ["--certificate", "--replay", "--case-certificate"])
def test_a_file_that_cannot_be_written_is_said(run: Callable, option: str) -> None:
    result = run("equiv", "linear_attn", "retnet", option, "none/there.txt")
    assert (
        result.exit_code == 1
        and "error[E-FILE]: none/there.txt: there is no folder none" in result.output
    )


@pytest.mark.ci
def test_what_there_is_nothing_of_is_said_and_not_written(run: Callable, folder: Path) -> None:
    result = run("equiv", "gla", "gla", "--replay", "a.py", "--case-certificate", "b.json")
    assert result.exit_code == 0
    assert "not written: a.py: there is no point to run" in result.output
    assert "not written: b.json: nothing is shown of cases beside the verdict" in result.output
    assert list(folder.iterdir()) == []


SLOW = """
import sys, time
from dsfc.cli import main
{before}
sys.argv = ["dsfc", "equiv", "two.dsf:a", "two.dsf:b", "--timeout", "{seconds}", *{more}]
main()
"""
LATE = "from dsfc.prover import subsumes\nsubsumes.subsumes = lambda *_: time.sleep(60)"
NEVER = "from dsfc.prover import equivalent\nequivalent.comparable = lambda *_: time.sleep(60)"


@pytest.mark.ci
def test_what_was_found_is_printed_when_time_is_up(start: Callable, spec: Callable) -> None:
    spec(TWO.replace("{drive}", "2 * u"), "two.dsf")
    more = ["--certificate", "proof.json"]
    done = start(code=SLOW.format(before=LATE, seconds=5, more=more))
    assert done.returncode == 4 and done.stdout.startswith("a = b: refuted\n"), done.stderr
    left = "time was up before more was examined: whether one is a case of the other\n"
    assert left in done.stdout and "E-LIMIT" not in done.stderr
    assert json.loads(Path("proof.json").read_text(encoding="utf-8"))


@pytest.mark.full
def test_the_option_is_named_where_nothing_was_found(start: Callable, spec: Callable) -> None:
    spec(TWO.replace("{drive}", "2 * u"), "two.dsf")
    done = start(code=SLOW.format(before=NEVER, seconds=3, more=[]))
    assert done.returncode == 1 and not done.stdout
    assert "error[E-LIMIT]: time to compare two.dsf:a and two.dsf:b: more, at most 3 s allowed" in (
        done.stderr
    )
    assert "`--timeout SECONDS` allows more" in done.stderr


@pytest.mark.full
def test_a_timeout_in_a_process_of_somebody_else_ends_the_search_alone(
    run: Callable, spec: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: object) -> None:
        while True:
            pass

    path = spec(TWO.replace("{drive}", "2 * u"), "two.dsf")
    run("equiv", f"{path}:a", f"{path}:b")  # what is imported once does not count
    monkeypatch.setattr(subsumes, "subsumes", endless)
    found = run("equiv", f"{path}:a", f"{path}:b", "--timeout", "3")
    assert found.exit_code == 4 and "time was up" in found.output
    monkeypatch.setattr(equivalent, "comparable", endless)
    refused = run("equiv", f"{path}:a", f"{path}:b", "--timeout", "0.5")
    assert refused.exit_code == 1 and "`--timeout SECONDS` allows more" in refused.output


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon", "1e9"])
def test_a_timeout_is_a_number_of_seconds(run: Callable, spec: Callable, seconds: str) -> None:
    path = spec(TWO.replace("{drive}", "u"), "two.dsf")
    assert run("equiv", f"{path}:a", f"{path}:b", "--timeout", seconds).exit_code == 2


ORTHOGONAL = """
mixer layer { dims n, p
  input q, k : n;  v : p
  y = (q · k) * v
}
mixer additive extends layer {
  state S : n × p
  S = S[i-1] + k ⊗ v
  y = q · S
}
mixer delta extends layer {
  state S : n × p
  S = S[i-1] + k ⊗ (v - k · S[i-1])
  y = q · S
  claim equivalent additive when k · k[j] == 0 for j < i
}
"""


def test_what_a_claim_assumes_is_printed(run: Callable, spec: Callable, folder: Path) -> None:
    path = spec(ORTHOGONAL)
    (claim,) = claims(read(folder / path).compilation("delta"))
    assert isinstance(claim.verdict, Proved) and claim.verdict.certificate is not None
    (folder / "proof.json").write_text(write(claim.verdict.certificate), encoding="utf-8")
    accepted = run("check-proof", "proof.json", f"{path}:delta", f"{path}:additive")
    assert accepted.exit_code == 0, accepted.output
    assert "equal outputs where something is assumed, for all n, p" in accepted.output
    assert "assumed    k · k[j] == 0 for j < i, of the first" in accepted.output


def test_a_refutation_is_printed_before_cases_are_looked_for(
    run: Callable, spec: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[str] = []

    def look(*asked: object) -> Unknown:
        written = sys.stdout.buffer
        assert isinstance(written, BytesIO)
        printed.append(written.getvalue().decode())
        return Unknown("nothing", (), "nothing")

    monkeypatch.setattr(subsumes, "subsumes", look)
    path = spec(CASES)
    pair = f"{path}:keeps", f"{path}:forgets"
    whole = run("equiv", *pair).output
    assert printed[0].startswith("keeps = forgets: refuted\n  sizes ")
    assert whole.startswith(printed[0]) and whole.count("refuted\n") == 1
    printed.clear()
    assert json.loads(run("equiv", *pair, "--format", "json").output)["SUB"] and printed[0] == ""
