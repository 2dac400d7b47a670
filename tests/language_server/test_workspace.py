"""Open texts, and how much work a change is."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.language_server import document as reading
from dsfc.language_server import hover as hovering
from dsfc.language_server.complete import complete
from dsfc.language_server.findings import findings, findings_of_check
from dsfc.language_server.hover import hover
from dsfc.language_server.workspace import Workspace
from dsfc.mixer import library as books

BASE = "mixer base {\n  dims d\n  input u : d\n  y = u\n}\n"
TOP = "mixer top extends base {\n  z = y\n}\n"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was parsed, typed and derived, in order."""
    found: list[str] = []

    def counted(module: object, name: str) -> None:
        real = getattr(module, name)

        def call(*args: object) -> object:
            found.append(name)
            return real(*args)

        monkeypatch.setattr(module, name, call)

    counted(reading, "parse")
    counted(books, "parse")
    counted(reading, "resolve")
    counted(hovering, "derive")
    return found


def test_a_change_parses_once_types_what_changed_and_derives_nothing(calls: list[str]) -> None:
    text = "".join(f"mixer m{k} extends qkv {{\n  y = q * {k}\n}}\n" for k in range(20))
    workspace = Workspace()
    it = workspace.change("<text>", text)
    assert calls.count("resolve") == 20
    calls.clear()
    it = workspace.change("<text>", text.replace("q * 7", "q * 70"))
    complete(it, text.index("q * 7"))
    assert calls == ["parse", "resolve"]
    calls.clear()
    workspace.change("<text>", "# a line above\n" + text.replace("q * 7", "q * 70"))
    assert calls == ["parse"]
    calls.clear()
    it = workspace.change("<text>", text.replace("q * 7", "q *"))
    complete(it, text.index("q * 7"))
    assert calls == ["parse"]
    calls.clear()
    it = workspace.change("<text>", text)
    hover(it, text.index("m7"))
    assert calls.count("derive") == 1


def test_a_mixer_is_typed_again_when_its_base_changes(calls: list[str]) -> None:
    workspace = Workspace()
    workspace.change("<text>", BASE + TOP)
    calls.clear()
    it = workspace.change("<text>", BASE.replace("= u", "= nothing") + TOP)
    assert calls == ["parse", "resolve", "resolve"]
    assert [d.code for d in it.diagnostics] == ["E-UNKNOWN-NAME"]


def test_an_open_text_stands_for_its_file(tmp_path: Path) -> None:
    (tmp_path / "base.dsf").write_text(BASE, encoding="utf-8")
    workspace, base, top = Workspace(), str(tmp_path / "base.dsf"), str(tmp_path / "top.dsf")
    assert workspace.change(top, TOP.replace("z = y", "y = w")).diagnostics
    workspace.change(base, BASE.replace("y = u", "w = u\n  y = u"))
    it = workspace.get(top)
    assert it is not None and not it.diagnostics
    workspace.close(base)
    it = workspace.get(top)
    assert it is not None and [d.code for d in it.diagnostics] == ["E-UNKNOWN-NAME"]
    assert workspace.names() == (top,)


def test_findings_say_what_check_says(open_text) -> None:
    from click.testing import CliRunner

    from dsfc.cli import commands

    text = "mixer m {\n  dims d, n\n  input u : d\n  param a : n\n  y = u * a + ν\n  x = 𝑥\n}\n"
    it, _ = open_text(text)
    done = CliRunner().invoke(commands, ["check", "--format", "json", "-"], input=text.encode())
    own = findings(it.source, it.diagnostics)
    assert own == findings_of_check(it.source, done.stdout)
    assert own and all(found.span.source is it.source for found in own)


def test_a_mistake_in_a_base_is_said_at_the_text_that_extends_it(tmp_path: Path) -> None:
    (tmp_path / "base.dsf").write_text(BASE.replace("= u", "= w"), encoding="utf-8")
    it = Workspace().change(str(tmp_path / "top.dsf"), TOP)
    (found,) = findings(it.source, it.diagnostics)
    assert "base.dsf:4:7" in found.message and found.span.start == 0
