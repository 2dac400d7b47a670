"""What all commands share: exit codes, colours, help, faults of the compiler itself."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

import dsfc.api.pipeline
from dsfc.cli import EXAMPLES, GROUPS, commands
from dsfc.cli.process import WATCHDOG
from dsfc.structure.ir import Structure
from dsfc.system.ir import System

COMMANDS = (
    "list",
    "new",
    "check",
    "info",
    "doctor",
    "fmt",
    "compile",
    "model",
    "explain",
    "show",
    "report",
    "compare",
    "verify",
    "rounding",
    "equiv",
    "check-proof",
    "atlas",
    "convert",
    "export",
    "lift",
    "lsp",
    "completion",
)

RUNNING = """\
mixer running {
  dims d
  input u : d
  state s : d
  s = 1/2 * s[i-1] + u
  y = s
}
"""

WRONG = {
    "empty": "",
    "no mixer": "hello world",
    "no brace": "mixer m {\n  dims d\n  input u : d\n  y = u\n",
    "unknown name": "mixer m {\n  dims d\n  input u : d\n  y = x\n}\n",
    "unknown axis": "mixer m {\n  dims d\n  input u : e\n  y = u\n}\n",
    "future": "mixer m {\n  dims d\n  input u : d\n  y = u[i+1]\n}\n",
    "shapes": "mixer m {\n  dims d, n\n  input u : d;  w : n\n  y = u + w\n}\n",
    "nonlinear": "mixer m {\n  dims d\n  input u : d\n  state s : d\n"
    "  s = s[i-1] * s[i-1]\n  y = s\n}\n",
    "character": "mixer m {\n  dims d\n  input u : d\n  y = u § u\n}\n",
    "base": "mixer m extends nothing {\n  y = u\n}\n",
    "itself": "mixer m extends m {\n  y = u\n}\n",
    "number": "mixer m {\n  dims d\n  input u : d\n  y = 12345678901234567890 * u\n}\n",
    "nesting": "mixer m {\n  dims d\n  input u : d\n  y = "
    + "(" * 5000
    + "u"
    + ")" * 5000
    + "\n}\n",
    "chain": "mixer m {\n  dims d\n  input u : d\n  y = " + "-" * 5000 + "u\n}\n",
    "size": "# " + "x" * 70_000,
}


@pytest.mark.share(3)
@pytest.mark.parametrize("command", ["check", "show", "compile"])
@pytest.mark.parametrize("text", WRONG.values(), ids=list(WRONG))
def test_a_wrong_text_gives_diagnostics_and_code_1(
    run: Callable, spec: Callable, command: str, text: str
) -> None:
    spec(text, "wrong.dsf")
    result = run(command, "wrong.dsf")
    said = result.stdout if command == "check" else result.stderr
    assert result.exit_code == 1
    assert "error[E-" in said and "wrong.dsf" in said
    assert "Traceback" not in result.output


@pytest.mark.parametrize("form", ["json", "sarif", "short"])
@pytest.mark.parametrize(
    "command",
    [("compile",), ("show",), ("fmt", "--check"), ("equiv", "s6"), ("atlas", "--no-cache")],
    ids=lambda it: it[0],
)
def test_mistakes_are_printed_in_the_format_asked_for(
    run: Callable, spec: Callable, command: tuple[str, ...], form: str
) -> None:
    spec(WRONG["no brace"], "wrong.dsf")
    result = run(*command, "wrong.dsf", "--format", form)
    assert result.exit_code == 1
    if form == "short":
        (line,) = result.stderr.splitlines()
        assert line.startswith("wrong.dsf:5:1: error: E-SYNTAX: ")
        return
    said = json.loads(result.stderr)
    (found,) = said if form == "json" else said["runs"][0]["results"]
    assert "E-SYNTAX" in (found.get("code"), found.get("ruleId"))


def test_mistakes_of_several_texts_are_one_document(run: Callable, spec: Callable) -> None:
    spec(WRONG["no brace"], "a.dsf")
    spec(WRONG["no mixer"], "b.dsf")
    for command in ("compile", "fmt"):
        said = json.loads(run(command, "a.dsf", "b.dsf", "--format", "json").stderr)
        assert [it["span"]["file"] for it in said] == ["a.dsf", "b.dsf"]


@pytest.mark.parametrize("command", ["check", "show", "compile"])
def test_what_is_no_text(run: Callable, folder: Path, command: str) -> None:
    (folder / "bytes.dsf").write_bytes(b"mixer \xff\xfe")
    (folder / "folder.dsf").mkdir()
    for name in ("bytes.dsf", "folder.dsf", "missing.dsf", "nul\0.dsf", "x" * 5000):
        result = run(command, name)
        assert result.exit_code == 1 and "E-FILE" in result.output


@pytest.mark.parametrize("args", [["frobnicate"], ["check"], ["--frobnicate"], ["show"]])
def test_wrong_usage_gives_code_2(run: Callable, args: list[str]) -> None:
    result = run(*args)
    assert result.exit_code == 2 and "Usage: " in result.stderr


def test_a_near_command_is_named(run: Callable) -> None:
    assert "compile" in run("compil").stderr


def test_an_internal_fault_gives_code_3_and_says_how_to_report_it(
    run: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(system: object) -> None:
        raise KeyError("S")

    monkeypatch.setattr(dsfc.api.pipeline, "classify", fail)
    result = run("show", "s6")
    assert result.exit_code == 3
    assert result.stderr.startswith("internal error in stage classify: KeyError: 'S'\n")
    assert "fault of dsfc" in result.stderr and version("dsfc") in result.stderr
    assert "Traceback" not in result.stderr
    monkeypatch.setenv("DSFC_TRACEBACK", "1")
    assert "Traceback" in run("show", "s6").stderr


def test_every_command_is_in_the_help(run: Callable) -> None:
    result = run("--help")
    assert result.exit_code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in result.output
        assert run(name, "--help").exit_code == 0
    assert set(commands.commands) == set(COMMANDS)


def test_nothing_at_all_is_a_question_for_help(run: Callable) -> None:
    assert run().exit_code == 0
    assert run().output == run("--help").output
    assert "\nExamples:\n  dsfc new mine" in run().output


def test_every_command_is_in_one_group() -> None:
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(commands.commands) and len(set(listed)) == len(listed)


def test_version(run: Callable) -> None:
    assert run("--version").output == f"dsfc {version('dsfc')}\n"


def test_the_examples_of_the_help_are_commands(run: Callable) -> None:
    own = [e for c in commands.commands.values() for e in getattr(c, "examples", ())]
    assert len(own) >= 15
    for line, meaning in (*EXAMPLES, *own):
        program, name, *words = line.split()
        assert program == "dsfc" and meaning
        commands.commands[name].make_context(name, words)  # refuses what is no option
    for name in ("new", "check", "show", "equiv"):
        assert "\nExamples:\n  dsfc " in run(name, "--help").output
    assert run("--help").output.count("\n  dsfc ") == len(EXAMPLES)


def test_all_commands_take_the_same_formats(run: Callable) -> None:
    without = {"explain", "lsp", "completion"}  # they print no mistakes
    for name, command in commands.commands.items():
        has = any("--format" in p.opts for p in command.params)
        assert has == (name not in without), name
        if has:
            refused = run(name, "--format", "none")
            assert "'human', 'json', 'short', 'sarif'" in refused.stderr, name


@pytest.mark.parametrize("code", ["E-SYNTAX", "e-syntax"])
def test_explain_prints_a_page(run: Callable, code: str) -> None:
    result = run("explain", code)
    assert result.exit_code == 0 and result.output.startswith("E-SYNTAX: ")


@pytest.mark.full
def test_pipes_get_no_colours(start: Callable) -> None:
    done = start("check", "lstm")
    assert done.returncode == 1 and "\x1b" not in done.stdout + done.stderr


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize("no_color, coloured", [("", True), ("1", False)])
def test_terminals_get_colours_unless_told_not_to(no_color: str, coloured: bool) -> None:
    import os
    import pty

    out: list[bytes] = []

    def read(descriptor: int) -> bytes:
        data = os.read(descriptor, 1024)
        out.append(data)
        return b"."

    before = os.environ.get("NO_COLOR")
    os.environ["NO_COLOR"] = no_color
    try:
        pty.spawn([sys.executable, "-m", "dsfc", "check", "lstm"], read)
    finally:
        del os.environ["NO_COLOR"]
        if before is not None:
            os.environ["NO_COLOR"] = before
    assert (b"\x1b[" in b"".join(out)) is coloured


@pytest.mark.full
def test_a_terminal_without_greek_loses_nothing(start: Callable) -> None:
    done = start("show", "normalized_attn", "--form", "index", PYTHONIOENCODING="latin-1")
    assert done.returncode == 0 and "log \\u03bb" in done.stdout


@pytest.mark.ci
@pytest.mark.skipif(sys.platform == "win32", reason="a shell")
def test_a_reader_that_goes_away_is_no_fault(folder: Path) -> None:
    import subprocess

    done = subprocess.run(
        f"{sys.executable} -m dsfc show s6 --form json | head -c 1",
        shell=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "{" and "error" not in done.stderr


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ("time.sleep(30)", "time by the clock to show running.dsf: more, at most 3 s allowed"),
        ("any(False for _ in iter(int, 1))", "time to show running.dsf: more, at most 0.5 s allow"),
    ],
    ids=["wait", "work"],
)
def test_a_run_that_takes_too_long_ends_with_a_diagnostic(
    start: Callable, spec: Callable, stage: str, said: str
) -> None:
    spec(RUNNING, "running.dsf")
    code = (
        "import sys, time, dsfc.limits, dsfc.api.pipeline\n"
        "from dsfc.cli import process, main\n"
        "dsfc.api.pipeline.load('running.dsf').structure\n"  # what is imported does not count
        "process.bounded.__wrapped__.__defaults__ = (dsfc.limits.Limits(seconds=0.5),)\n"
        f"dsfc.api.pipeline.classify = lambda system: {stage}\n"
        "sys.argv = ['dsfc', 'show', 'running.dsf']\n"
        "main()\n"
    )
    done = start(code=code)
    assert done.returncode == 1
    assert f"error[E-LIMIT]: {said}" in done.stderr
    assert ("less than 0.5 s" in done.stderr) == ("sleep" in stage)  # which is no fault of the spec
    assert "--> running.dsf:1:" in done.stderr  # what was under way
    assert "\x1b" not in done.stderr


@pytest.mark.ci
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_a_terminal_is_told_what_takes_long(folder: Path, spec: Callable) -> None:
    import os
    import pty

    spec(RUNNING, "running.dsf")
    code = (
        "import sys, time, dsfc.api.pipeline\n"
        "from dsfc.cli import process, main\n"
        "process._TICK = 0.05\n"
        "classify = dsfc.api.pipeline.classify\n"
        "dsfc.api.pipeline.classify = lambda system: time.sleep(0.3) or classify(system)\n"
        "sys.argv = ['dsfc', 'show', 'running.dsf']\n"
        "main()\n"
    )
    out: list[bytes] = []

    def read(descriptor: int) -> bytes:
        out.append(os.read(descriptor, 1024))
        return b"."

    pty.spawn([sys.executable, "-c", code], read)
    told, shown = b"".join(out).replace(b"\r\n", b"\n").rsplit(b"\r", 1)
    assert b"\rshow running.dsf, at running.dsf:1, " in told and told.endswith(b" ")
    assert shown.startswith(b"running\n  one fixed decay")


@pytest.mark.ci
@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="no bound on memory there")
def test_a_run_that_takes_too_much_memory_ends_with_a_diagnostic(
    start: Callable, spec: Callable
) -> None:
    spec(RUNNING, "running.dsf")
    code = (
        "import sys, dsfc.limits, dsfc.api.pipeline\n"
        "from dsfc.cli import process, main\n"
        "process.bounded.__wrapped__.__defaults__ = (dsfc.limits.Limits(memory=2 << 30),)\n"
        "dsfc.api.pipeline.classify = lambda system: bytearray(4 << 30)\n"
        "sys.argv = ['dsfc', 'show', 'running.dsf']\n"
        "main()\n"
    )
    done = start(code=code)
    assert done.returncode == 1
    assert "error[E-LIMIT]: memory to show running.dsf" in done.stderr
    assert "--> running.dsf:1:7" in done.stderr


def test_a_process_that_is_not_ours_is_not_ended(
    run: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    seen = []
    classify = dsfc.api.pipeline.classify

    def watched(system: System) -> Structure:
        names = {thread.name for thread in threading.enumerate()}
        seen.append((resource.getrlimit(resource.RLIMIT_AS), WATCHDOG in names))
        return classify(system)

    monkeypatch.setattr(dsfc.api.pipeline, "classify", watched)
    assert run("show", "s6").exit_code == 0
    assert seen == [(before, False)]


@pytest.mark.ci
def test_where_no_thread_starts_commands_run_unwatched(start: Callable) -> None:
    """As Python in a browser, which has none."""
    done = start(
        code="import sys, threading\n"
        "sys.platform = 'emscripten'\n"
        "def refuse(thread):\n"
        '    raise RuntimeError("can\'t start new thread")\n'
        "threading.Thread.start = refuse\n"
        "from dsfc.cli import main\n"
        "sys.argv = ['dsfc', 'check', 'gla']\n"
        "main()\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "proved 0 < decay(S) < 1" in done.stdout


def test_the_server_says_what_it_needs(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "dsfc.language_server.server", raising=False)
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    result = run("lsp")
    assert result.exit_code == 1 and "pip install 'dsfc[lsp]'" in result.stderr
