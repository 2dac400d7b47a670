"""`dsfc verify`: where the spec of a module is found, what an edit does, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import dsfc
from dsfc.api import validate
from dsfc.validate.report import Outcome, Report, Row

MINE = """\
mixer mine {
  dims d
  input u : d
  param a : d = 1/2
  state s : d
  s = sigmoid(a * u) * s[i-1] + u
  y = s
}
"""


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces the checks themselves by one that is kept; lists the modules it was asked of."""
    ran: list[str] = []

    def run(module: ModuleType, **options: object) -> Report:
        ran.append(module.__name__)
        rows = (
            Row("definition", "Modes agree", Outcome.KEPT, "largest relative error 1e-16", 0.1),
        )
        return Report("mine", module.NAMESPACE, {"d": 3}, rows)

    monkeypatch.setattr(validate, "run_checks", run)
    return ran


@pytest.fixture
def module(spec: Callable, folder: Path) -> Path:
    """A compiled module beside its spec."""
    return dsfc.compile(spec(MINE), out=folder)


def origin(result: object) -> tuple[str, str]:
    """Outcome and figure of the row that speaks of the spec."""
    (row,) = (r for r in json.loads(result.stdout)["rows"] if r["name"] == "origin")  # type: ignore[attr-defined]
    return row["outcome"], row["figure"]


def test_a_spec_is_compiled_and_nothing_is_left(
    run: Callable, spec: Callable, folder: Path, checks: list[str]
) -> None:
    spec(MINE)
    result = run("verify", "mine.dsf")
    assert result.exit_code == 0 and "definition" in result.stdout
    assert len(checks) == 1 and [p.name for p in folder.iterdir()] == ["mine.dsf"]


def test_a_shipped_spec(run: Callable, checks: list[str]) -> None:
    assert run("verify", "s6").exit_code == 0 and len(checks) == 1


def test_a_module_beside_its_spec(run: Callable, module: Path, checks: list[str]) -> None:
    result = run("verify", module, "--format", "json")
    assert result.exit_code == 0
    assert origin(result) == ("kept", "what dsfc writes for mine.dsf, byte for byte")


def test_a_module_of_a_shipped_spec(run: Callable, folder: Path, checks: list[str]) -> None:
    dsfc.compile("s6", out=folder)
    result = run("verify", "s6.py", "--format", "json")
    assert origin(result) == ("kept", "what dsfc writes for s6.dsf, byte for byte")


def test_a_module_without_its_spec(run: Callable, module: Path, checks: list[str]) -> None:
    Path("mine.dsf").rename("moved.dsf")
    outcome, figure = origin(run("verify", module, "--format", "json"))
    assert outcome == "kept" and "mine.dsf is not at hand" in figure
    moved = run("verify", module, "--spec", "moved.dsf", "--format", "json")
    # Another name stands in the header, so the bytes differ; the reference does not.
    assert origin(moved)[0] == "kept" and "the reference is the same" in origin(moved)[1]


def test_a_spec_that_was_changed_since_is_not_taken(
    run: Callable, spec: Callable, module: Path, checks: list[str]
) -> None:
    spec(MINE.replace("+ u", "+ 2 * u"))
    _, figure = origin(run("verify", module, "--format", "json"))
    assert "is not at hand" in figure


def test_a_module_held_against_another_spec_is_broken(
    run: Callable, spec: Callable, module: Path, checks: list[str]
) -> None:
    spec(MINE.replace("+ u", "+ 2 * u"))
    result = run("verify", module, "--spec", "mine.dsf", "--format", "json")
    assert result.exit_code == 1
    assert origin(result) == ("broken", "the reference is not that of mine.dsf")


def test_an_edit_that_leaves_the_reference_alone(
    run: Callable, module: Path, checks: list[str]
) -> None:
    module.write_text(module.read_text(encoding="utf-8") + "\n# mine\n", encoding="utf-8")
    outcome, figure = origin(run("verify", module, "--format", "json"))
    assert outcome == "kept" and "the reference is the same" in figure


def test_an_edit_cannot_move_the_goal(run: Callable, module: Path, checks: list[str]) -> None:
    text = module.read_text(encoding="utf-8")
    head, tail = text.split("def reference(")
    module.write_text(f"{head}def reference({tail.replace('sigmoid', 'tanh')}", encoding="utf-8")
    result = run("verify", module)
    assert result.exit_code == 1
    assert "broken  origin" in result.stdout


def test_an_edited_module_without_its_spec_is_broken(
    run: Callable, module: Path, checks: list[str]
) -> None:
    Path("mine.dsf").unlink()
    module.write_text(module.read_text(encoding="utf-8") + "\n# mine\n", encoding="utf-8")
    result = run("verify", module)
    assert result.exit_code == 1 and "name it" in result.stdout


def test_a_broken_promise_gives_code_1(
    run: Callable, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = (Row("modes", "Modes agree", Outcome.BROKEN, "off by 0.1", 0.1),)
    monkeypatch.setattr(validate, "run_checks", lambda *_, **__: Report("mine", "ns", {}, rows))
    assert run("verify", module).exit_code == 1


@pytest.mark.parametrize(
    "text, message",
    [("x = 1\n", "not a module that dsfc wrote"), ("", "not a module that dsfc wrote")],
)
def test_what_is_no_module(run: Callable, folder: Path, text: str, message: str) -> None:
    (folder / "other.py").write_text(text, encoding="utf-8")
    result = run("verify", "other.py")
    assert result.exit_code == 1 and message in result.stderr


def test_a_module_that_does_not_run_is_no_fault_of_dsfc(run: Callable, module: Path) -> None:
    module.write_text(module.read_text(encoding="utf-8") + "\n1 / 0\n", encoding="utf-8")
    result = run("verify", module)
    assert result.exit_code == 1
    assert "importing it raises ZeroDivisionError" in result.stderr


@pytest.mark.parametrize(
    "args, code", [(["missing.py"], 1), (["missing.dsf"], 1), (["lstm"], 1), ([], 2)]
)
def test_wrong_inputs(run: Callable, args: list[str], code: int) -> None:
    assert run("verify", *args).exit_code == code


def test_without_torch_the_user_is_told_so(start: Callable, spec: Callable) -> None:
    spec(MINE)
    code = "import sys; sys.modules['torch'] = None\nfrom dsfc.cli import main\nmain()"
    done = start(code=f"import sys; sys.argv = ['dsfc', 'verify', 'mine.dsf']\n{code}")
    assert done.returncode == 2 and "install torch" in done.stderr


def test_an_imported_module_and_the_sizes_are_taken_as_they_are(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, object] = {}

    def run(it: ModuleType, **options: object) -> Report:
        seen.update(options, module=it)
        return Report("mine", "ns", {})

    monkeypatch.setattr(validate, "run_checks", run)
    imported = dsfc.import_module(module)
    dsfc.verify(imported, sizes={"d": 5}, quick=False)
    options = {"sizes": {"d": 5}, "quick": False, "fast": False, "progress": None}
    options |= {"unit": frozenset(), "more": ()}
    assert seen == {"module": imported, **options}


GATED = """\
mixer mine { dims d
  input u : d; lambda : d unit; z : d nonzero
  state s : d
  s = lambda * s[i-1] + u * z
  y = s
}
"""


@pytest.mark.parametrize("compiled", [False, True])
def test_ranges_of_inputs_come_from_the_spec(
    spec: Callable, folder: Path, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module does not say what is promised of its arguments, and decays rest on it."""
    seen: list[object] = []

    def run(it: ModuleType, **options: object) -> Report:
        seen.append(options["unit"])
        return Report("mine", "ns", {})

    monkeypatch.setattr(validate, "run_checks", run)
    file = spec(GATED)
    dsfc.verify(dsfc.compile(file, out=folder) if compiled else file)
    assert seen == [frozenset({"lambda_"})]


@pytest.mark.parametrize(
    ("words", "quick", "fast"),
    [((), True, False), (("--fast",), True, True), (("--full",), False, False)],
)
def test_how_much_is_checked(
    run: Callable, module: Path, monkeypatch: pytest.MonkeyPatch, words, quick: bool, fast: bool
) -> None:
    seen: dict[str, object] = {}

    def run_checks(it: ModuleType, **options: object) -> Report:
        seen.update(options)
        return Report("mine", "ns", {})

    monkeypatch.setattr(validate, "run_checks", run_checks)
    assert run("verify", module, *words).exit_code == 0
    assert (seen["quick"], seen["fast"]) == (quick, fast)


def test_fast_and_full_are_two_wishes(run: Callable, module: Path) -> None:
    result = run("verify", module, "--fast", "--full")
    assert result.exit_code == 2 and "not both" in result.stderr


@pytest.mark.ci
def test_the_fast_checks_themselves(run: Callable) -> None:
    result = run("verify", "--fast", "normalized_attn")
    assert result.exit_code == 0, result.output
    assert "11 of 11 promises kept" in result.stdout


@pytest.mark.full
def test_the_checks_themselves(run: Callable) -> None:
    result = run("verify", "normalized_attn")
    assert result.exit_code == 0, result.output
    assert "definition" in result.stdout and "gradcheck" in result.stdout


def test_kernels_are_proved_and_nothing_runs(run: Callable, checks: list[str]) -> None:
    result = run("verify", "rg_lru", "--kernels")
    assert result.exit_code == 0 and not checks
    assert "  forward   proved for all lengths and all sizes, by induction over tokens\n" in (
        result.stdout
    )


def test_proofs_of_kernels_are_json(run: Callable) -> None:
    result = run("verify", "rg_lru", "--kernels", "--backend", "c", "--format", "json")
    assert [k["status"] for k in json.loads(result.stdout)["kernels"]] == [
        "proved",
        "proved at some lengths",
        "proved",
    ]


@pytest.mark.parametrize(
    "words", [("--kernels", "--fast"), ("--kernels", "--full"), ("--backend", "c")]
)
def test_options_that_do_not_go_together_are_refused(run: Callable, words: tuple[str, ...]) -> None:
    result = run("verify", "rg_lru", *words)
    assert result.exit_code == 2
    assert "--kernels" in result.stderr
