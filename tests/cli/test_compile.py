"""`dsfc compile`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

PLAIN = """\
mixer plain {
  dims d
  input u : d
  param a : d = 1/2
  state s : d
  s = sigmoid(a * u) * s[i-1] + u
  y = s
}
"""


def test_the_module_is_written_here_and_its_path_printed(run: Callable, folder: Path) -> None:
    result = run("compile", "s6")
    assert (result.exit_code, result.output) == (0, "s6.py\n")
    text = (folder / "s6.py").read_text(encoding="utf-8")
    assert text.startswith("# Written by dsfc ") and "class S6(" in text


def test_twice_is_once(run: Callable, folder: Path) -> None:
    run("compile", "s6")
    before = (folder / "s6.py").stat().st_mtime_ns
    assert run("compile", "s6").exit_code == 0
    assert (folder / "s6.py").stat().st_mtime_ns == before


def test_to_a_file_or_a_folder(run: Callable, folder: Path) -> None:
    (folder / "out").mkdir()
    assert run("compile", "s6", "-o", "mine.py").output == "mine.py\n"
    assert run("compile", "s6", "-o", "out").output == str(Path("out", "s6.py")) + "\n"
    assert (folder / "mine.py").read_bytes() == (folder / "out" / "s6.py").read_bytes()


def test_a_slash_makes_a_folder(run: Callable, folder: Path) -> None:
    assert run("compile", "s6", "-o", "new/").output == "new/s6.py\n"
    assert run("compile", "s6", "retnet", "-o", "a/b/").output == "a/b/s6.py\na/b/retnet.py\n"
    refused = run("compile", "s6", "retnet", "-o", "other")
    assert refused.exit_code == 2 and "write other/" in refused.output
    assert run("compile", "s6", "-o", "new/s6.py/").exit_code == 1


def test_a_mistake_makes_no_folder(run: Callable, folder: Path) -> None:
    assert run("compile", "separable", "-o", "new/").exit_code == 1
    assert list(folder.iterdir()) == []


def test_to_standard_output(run: Callable, folder: Path) -> None:
    run("compile", "s6")
    result = run("compile", "s6", "-o", "-")
    assert result.output == (folder / "s6.py").read_text(encoding="utf-8")


@pytest.mark.share(3)
@pytest.mark.parametrize("backend", ["c", "triton", "all"])
def test_scans_without_kernels_are_named(run: Callable, folder: Path, backend: str) -> None:
    result = run("compile", "linear_rnn", "--backend", backend)
    assert (result.exit_code, result.stdout) == (0, "linear_rnn.py\n")
    devices = {"c": "CPUs", "triton": "GPUs", "all": "CPUs and GPUs"}[backend]
    assert result.stderr == (
        f"note: linear_rnn: --backend {backend} has no kernels on {devices} for `x`, which torch "
        "runs: its Λ is a full matrix, and kernels have one λ for each entry of the state\n"
    )
    for args in (["gla", "--backend", backend], ["softmax", "--backend", backend], ["linear_rnn"]):
        assert run("compile", *args, "-o", "-").stderr == ""


def test_several_specs(run: Callable, folder: Path) -> None:
    result = run("compile", "s6", "retnet")
    assert (result.exit_code, result.output) == (0, "s6.py\nretnet.py\n")


def test_the_others_are_compiled_where_one_is_wrong(run: Callable, folder: Path) -> None:
    result = run("compile", "separable", "none", "s6")
    assert result.exit_code == 1
    assert result.stdout == "s6.py\n"
    assert "E-UNSUPPORTED" in result.stderr and "E-FILE" in result.stderr
    assert [p.name for p in folder.iterdir()] == ["s6.py"]


def test_a_foreign_file_is_kept_without_force(run: Callable, folder: Path) -> None:
    (folder / "s6.py").write_text("mine\n", encoding="utf-8")
    result = run("compile", "s6")
    assert result.exit_code == 1
    assert "error[E-OUTPUT]: s6.py: it was not written by dsfc" in result.stderr
    assert (folder / "s6.py").read_text(encoding="utf-8") == "mine\n"
    assert run("compile", "s6", "--force").exit_code == 0


def test_an_edited_module_is_kept_without_force(run: Callable, folder: Path) -> None:
    run("compile", "s6")
    with (folder / "s6.py").open("a", encoding="utf-8") as f:
        f.write("# a note of mine\n")
    assert run("compile", "s6").exit_code == 1


def test_a_changed_spec_replaces_its_module(run: Callable, spec: Callable, folder: Path) -> None:
    spec(PLAIN, "plain.dsf")
    run("compile", "plain.dsf")
    before = (folder / "plain.py").read_bytes()
    spec(PLAIN.replace("1/2", "1/3"), "plain.dsf")
    assert run("compile", "plain.dsf").exit_code == 0
    assert (folder / "plain.py").read_bytes() != before


def test_one_of_several_mixers(run: Callable, spec: Callable) -> None:
    spec(PLAIN + PLAIN.replace("plain", "other"), "two.dsf")
    assert run("compile", "two.dsf", "--mixer", "other").output == "other.py\n"
    result = run("compile", "two.dsf")
    assert result.exit_code == 1 and "E-MIXER" in result.stderr
    result = run("compile", "two.dsf", "--mixer", "othr")
    assert "did you mean `other`?" in result.stderr


def test_the_mixer_named_like_the_file_is_meant(run: Callable, spec: Callable) -> None:
    spec(PLAIN + PLAIN.replace("plain", "other"), "other.dsf")
    result = run("compile", "other.dsf")
    assert result.stdout == "other.py\n"
    said = "note: only other is compiled; other.dsf also defines plain; choose by other.dsf:NAME\n"
    assert result.stderr == said
    spec("mixer mine extends plain { y = 2 * u }\n" + PLAIN, "mine.dsf")
    assert run("compile", "mine.dsf").stderr == ""


def test_the_name_of_a_spec_never_leaves_the_folder(
    run: Callable, spec: Callable, folder: Path
) -> None:
    (folder / "in").mkdir()
    spec(PLAIN, "in/away.dsf")
    assert run("compile", "in/away.dsf").output == "plain.py\n"


def test_no_file_hides_a_module_of_the_platform(run: Callable, spec: Callable) -> None:
    spec(PLAIN.replace("plain", "torch"), "torch.dsf")
    assert run("compile", "torch.dsf").output == "torch_.py\n"


@pytest.mark.parametrize(
    "args, message",
    [
        (["s6", "--backend", "tensorflow"], "E-BACKEND"),
        (["s6", "--backend", "torhc"], "did you mean `torch`?"),
        (["s6", "-o", "no/such/folder.py"], "E-FILE"),
        (["qkv"], "E-NO-OUTPUT"),
        (["gate"], "E-MIXER"),
        (["separable"], "E-UNSUPPORTED"),
        (["s66"], "did you mean `s6`?"),
        (["."], "E-FILE"),
        (["dlr_bidirectional", "--layer", "--signature", "fla"], "help: without --signature fla"),
    ],
)
def test_wrong_inputs_leave_nothing(
    run: Callable, folder: Path, args: list[str], message: str
) -> None:
    result = run("compile", *args)
    assert result.exit_code == 1
    assert message in result.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["s6", "--out"],
        ["s6", "--colour", "red"],
        ["s6", "retnet", "-o", "one.py"],
        ["s6", "retnet", "--mixer", "s6"],
        ["s6", "s6"],
        ["s6", "--signature", "fla"],
        ["s6", "--layer", "--signature", "fla", "--context-parallel"],
        ["s6", "--layer", "--signature", "jax"],
    ],
)
def test_wrong_usage(run: Callable, folder: Path, args: list[str]) -> None:
    assert run("compile", *args).exit_code == 2
    assert list(folder.iterdir()) == []
