"""No text of a spec reaches an evaluator: Python's audit hook watches every command that reads one.

The specs of `canaries/` have `canary` in every name that a spec may choose, and in every string and
comment `venom`, in programs that leave a file behind where they are run. What `canaries/audited.py`
saw is held against the few events that may carry them, listed here by value.
"""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText, load
from dsfc.expr.distributions import DISTRIBUTIONS
from dsfc.expr.table import SPELLINGS
from dsfc.mixer.reserved_names import FORMS
from dsfc.source import Source
from dsfc.syntax.parse import parse

sys.path.insert(0, str(Path(__file__).parent.parent / "syntax"))
sys.path.insert(0, str(Path(__file__).parent.parent / "campaigns"))
import random_texts
from spec_writer import random_mixer

del sys.path[:2]

Seen = dict[str, str]
Watched = Callable[..., tuple[list[int], list[Seen]]]


@dataclass(frozen=True)
class Allowed:
    """An event that may carry canaries: who asks, on whose behalf, of which kinds, and why."""

    events: str
    kinds: str
    asks: str
    dsfc: str
    why: str

    def __contains__(self, seen: Seen) -> bool:
        return (
            seen["event"] in self.events.split()
            and seen["kind"] in self.kinds.split()
            and fnmatchcase(seen["asks"], self.asks)
            and any(fnmatchcase(seen["dsfc"], it) for it in self.dsfc.split())
        )


ALWAYS = (
    Allowed(
        "open", "canary", "dsfc.files:opened", "dsfc.files:opened",
        "a base that the text does not hold is read from the file of its name beside it, and a "
        "module from the file of its mixer's name",
    ),
    Allowed(
        "compile", "canary venom", "ast:parse", "dsfc.python_text:parsed",
        "emitted text is parsed to a tree, which is looked through before it is written, and read "
        "for its literals",
    ),
    Allowed(
        "os.rename", "canary", "dsfc.files:replace", "dsfc.files:replace",
        "a module goes to the file of its mixer's name, where no other is given",
    ),
)  # fmt: skip
EDITED = (
    Allowed(
        "subprocess.Popen", "always", "subprocess:_execute_child",
        "dsfc.language_server.check:check",
        "the server has `dsfc check -` look at a text, which goes to its standard input",
    ),
)  # fmt: skip
IMPORTED = (
    Allowed(
        "compile exec", "canary venom", "importlib._bootstrap:_call_with_frames_removed",
        "dsfc.emit.importing:* dsfc.validate.torch_surface:*",
        "the module itself is imported; texts stand in its docstrings",
    ),
    Allowed(
        "open os.remove", "canary", "*", "dsfc.emit.importing:* dsfc.api.convert:convert",
        "for a conversion modules lie in files of their mixers' names, in a folder that goes away",
    ),
    Allowed(
        "compile exec", "canary", "dataclasses:_create_fn", "emitted dsfc.validate.torch_surface:*",
        "a state is a dataclass, whose methods Python writes from the names of its fields",
    ),
)  # fmt: skip
TRACED = (
    Allowed(
        "compile exec function.__new__", "canary", "torch.*", "dsfc.validate.*",
        "PyTorch writes programs from the names of the tensors and operators that it traces",
    ),
    Allowed(
        "compile", "canary", "ast:parse", "dsfc.validate.compilers:*",
        "PyTorch reads its own guards, which name tensors, to a tree",
    ),
    Allowed(
        "subprocess.Popen", "always", "subprocess:_execute_child",
        "dsfc.validate.compilers:_elsewhere",
        "an exported module is loaded in another process, by a program that is fixed",
    ),
)  # fmt: skip

ONE = ("canaries.dsf", "--mixer", "canary_one")
A, B = "canaries.dsf:canary_one", "canaries.dsf:canary_other"
FILES = ("canary_base.dsf", "canaries.dsf", "typed.dsf", "wrong.dsf")
COMMANDS = (
    (1, ("check", *FILES)),
    *((0, ("show", *ONE, "--stage", stage)) for stage in ("ast", "mixer", "structure", "plan")),
    *((0, ("show", *ONE, "--form", form)) for form in ("index", "kronecker", "phi", "latex")),
    (0, ("show", *ONE, "--stage", "adjoint")),
    (0, ("show", *ONE, "--stage", "module")),
    (0, ("compile", *ONE)),
    (0, ("compile", *ONE, "-o", "one.py")),
    (0, ("info", "one.py")),
    (1, ("fmt", "--check", *FILES)),
    (0, ("equiv", A, A, "--certificate", "proof.json")),
    (0, ("check-proof", "proof.json", A, A)),
    (1, ("check", "-")),
)
MORE = (
    *((1, ("check", *FILES, "--format", form)) for form in ("json", "sarif", "short")),
    *((0, ("show", *ONE, "--stage", s, "--form", "json")) for s in ("ast", "mixer", "plan")),
    *(
        (0, ("show", *ONE, "--stage", stage, "--form", form, "--gauge", gauge))
        for stage in ("system", "adjoint")
        for form in ("index", "kronecker", "phi", "latex", "json")
        for gauge in ("lowered", "paper")
    ),
    *((0, ("show", *ONE, "--stage", s, "--backend", "triton")) for s in ("plan", "module")),
    (0, ("compile", *ONE, "--backend", "triton", "-o", "triton.py")),
    (0, ("info", "triton.py", "--format", "json")),
    (0, ("fmt", "--diff", "--ascii", "canaries.dsf")),
    (0, ("fmt", "canaries.dsf")),
    (4, ("equiv", A, B, "--certificate", "point.json", "--replay", "replay.py")),
    (4, ("equiv", A, B, "--conditions", "--explain")),
    (5, ("equiv", A, B, "--map", "canary_WQ=canary_WK", "--format", "json")),
    (0, ("check-proof", "point.json")),
    (0, ("atlas", "canaries.dsf", "--cache", "kept")),
    (0, ("atlas", "canaries.dsf", "--cache", "kept", "--conditions", "--format", "json")),
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, root: Path) -> Path:
    """A folder with the specs."""
    for name in FILES:
        shutil.copy(root / "tests" / "architecture" / "canaries" / name, tmp_path)
    return tmp_path


@pytest.fixture
def watched(folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Runs commands under the hook, in the folder; gives their exit codes and what was seen."""
    # Files that are kept between runs have their place outside; this is not about them.
    for variable in ("TMPDIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(folder))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    program = root / "tests" / "architecture" / "canaries" / "audited.py"

    def call(*commands: Iterable[str]) -> tuple[list[int], list[Seen]]:
        report = folder / "report.json"
        done = subprocess.run(
            [sys.executable, program, report, json.dumps([list(it) for it in commands])],
            cwd=folder,
            input=(folder / "canaries.dsf").read_bytes(),
            capture_output=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr.decode()
        assert not (folder / "venom").exists()
        found = json.loads(report.read_text(encoding="utf-8"))
        return found["codes"], found["seen"]

    return call


def strange(seen: Iterable[Seen], *allowed: Allowed) -> list[Seen]:
    return [it for it in seen if not any(it in one for one in allowed)]


@pytest.mark.ci
def test_commands_give_no_text_away(watched: Watched) -> None:
    codes, seen = watched(*(command for _, command in COMMANDS))
    assert codes == [code for code, _ in COMMANDS]
    assert strange(seen, *ALWAYS) == []
    assert [one.why for one in ALWAYS if not any(it in one for it in seen)] == []


@pytest.mark.full
def test_no_stage_form_or_format_gives_text_away(watched: Watched) -> None:
    codes, seen = watched(*(command for _, command in MORE))
    assert codes == [code for code, _ in MORE]
    assert strange(seen, *ALWAYS) == []


RANDOM = {"fast": 1, "ci": 3, "full": 300}
"""Mixers and texts that nobody wrote, of each kind."""

WORDS = {*FORMS, *SPELLINGS, *DISTRIBUTIONS, "i", "y", "first"}
VENOM = "venom: ''' + __import__('os').system('touch venom') + r''' {{ 7 * 7 }} ${venom} `venom`"
WAYS = (
    ("check",),
    ("fmt", "--check"),
    ("show", "--form", "index"),
    ("show", "--form", "latex"),
    ("show", "--stage", "mixer", "--form", "json"),
    ("show", "--stage", "adjoint"),
    ("show", "--stage", "plan"),
    ("compile", "-o", "torch.py"),
    ("compile", "--backend", "triton", "-o", "triton.py"),
)
"""What is asked about each."""


def poisoned(text: str, tokens: Iterable[tuple[str, str]]) -> str:
    """A text whose names hold `canary`, and whose strings and comments hold `venom`."""
    own = {name for kind, name in tokens if kind == "NAME" and name not in WORDS}
    named = re.sub(r"\w+", lambda m: f"canary_{m[0]}" if m[0] in own else m[0], text)
    lines = [f"{line} # {VENOM}" if "#" not in line else line for line in named.split("\n")]
    return re.sub(
        r"mixer (\w+) (\"[^\"]*\" )?", lambda m: f'mixer {m[1]} "{VENOM}" ', "\n".join(lines)
    )


def compiles(seed: int) -> bool:
    """Whether the random mixer of a seed, which stands alone, compiles."""
    text = random_mixer(seed)
    if "extends" in text or "use " in text:
        return False
    try:
        spec = parse(Source("<random>", text))
        SpecText(Place(Path("random.dsf")), spec).compilation().module()
    except Exception:
        return False
    return True


def random_specs(count: int) -> Iterator[str]:
    """Mixers that are well typed, and texts that only the parser takes, in equal numbers."""
    mixers = filter(compiles, itertools.count())
    for seed in range(count):
        text = random_mixer(next(mixers))
        yield poisoned(text, random_texts.tokens_of(text))
        text = random_texts.random_text(seed, random_texts.Drawn())
        yield poisoned(text, random_texts.tokens_of(text))


@pytest.mark.ci
def test_random_specs_give_no_text_away(watched: Watched, folder: Path, tier: str) -> None:
    commands = []
    for number, text in enumerate(random_specs(RANDOM[tier])):
        file = f"random_{number}.dsf"
        (folder / file).write_text(text, encoding="utf-8")
        commands += [(way[0], file, *way[1:]) for way in WAYS]
    codes, seen = watched(*commands)
    assert codes.count(0) > len(codes) // 4 and 1 in codes
    assert strange(seen, *ALWAYS) == []
    assert any(it["kind"] == "venom" for it in seen)


WEIGHTS = (
    "import torch\nfrom dsfc.emit.importing import import_module\nm = import_module('one.py')\n"
    "layer = getattr(m, m.__all__[0])(**{''.join(('can', 'ary_d')): 4})\n"
    "torch.save(layer.state_dict(), 'first.pt')"
)


@pytest.mark.ci
def test_modules_are_imported_and_no_more(watched: Watched) -> None:
    codes, seen = watched(
        ("compile", *ONE, "-o", "one.py"),
        ("python", WEIGHTS),
        ("convert", A, A, "first.pt", "--out", "second.pt"),
    )
    assert codes == [0, 0]
    assert strange(seen, *ALWAYS, *IMPORTED) == []
    assert [one.why for one in IMPORTED if not any(it in one for it in seen)] == []


@pytest.mark.full
def test_a_module_is_verified_without_its_texts(watched: Watched) -> None:
    codes, seen = watched(("compile", *ONE, "-o", "one.py"), ("verify", "one.py"))
    assert codes == [0, 0]
    assert strange(seen, *ALWAYS, *IMPORTED, *TRACED) == []
    assert [one.why for one in TRACED if not any(it in one for it in seen)] == []


@pytest.mark.full
def test_an_editor_gives_no_text_away(folder: Path, root: Path) -> None:
    program = root / "tests" / "architecture" / "canaries" / "audited.py"
    sys.path.insert(0, str(root / "tests" / "language_server"))
    try:
        from editor import Editor
    finally:
        sys.path.pop(0)
    report = folder / "report.json"
    before = Path.cwd()
    os.chdir(folder)
    try:
        editor = Editor(str(program), str(report), '["lsp"]')
    finally:
        os.chdir(before)
    try:
        _edit(editor, folder)
        assert editor.end() == 0
    finally:
        editor.kill()
    seen = json.loads(report.read_text(encoding="utf-8"))["seen"]
    assert strange(seen, *ALWAYS, *EDITED) == []
    started = [it["what"] for it in seen if it in EDITED[0]]
    assert started and all(
        "'-m', 'dsfc', 'check', '--format', 'json', '-']" in it for it in started
    )


def _edit(editor: Any, folder: Path) -> None:
    """Asks everything that can be asked, at names of a text."""
    editor.ask("initialize", processId=None, rootUri=None, capabilities={})
    editor.tell("initialized")
    for name in ("typed.dsf", "wrong.dsf", "canaries.dsf"):
        uri = (folder / name).as_uri()
        text = (folder / name).read_text(encoding="utf-8")
        opened = {"uri": uri, "languageId": "dsf", "version": 1, "text": text}
        editor.tell("textDocument/didOpen", textDocument=opened)
        assert bool(editor.diagnostics()) == (name != "canaries.dsf")
    here = {"textDocument": {"uri": uri}}
    lines = text.split("\n")
    places = [(k, line.index("canary")) for k, line in enumerate(lines) if "canary" in line][::4]
    for line, character in places:
        at = {**here, "position": {"line": line, "character": character}}
        for method in ("hover", "completion", "definition", "prepareRename", "signatureHelp"):
            assert "error" not in editor.ask(f"textDocument/{method}", **at)
        editor.ask("textDocument/rename", **at, newName="canary_new")
        editor.ask("textDocument/references", **at, context={"includeDeclaration": True})
    options = {"tabSize": 2, "insertSpaces": True}
    editor.ask("textDocument/formatting", **here, options=options)
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": len(lines) - 1, "character": 0}}
    editor.ask("textDocument/codeAction", **here, range=whole, context={"diagnostics": []})
    for method in ("documentSymbol", "semanticTokens/full", "inlayHint"):
        assert "error" not in editor.ask(f"textDocument/{method}", **here, range=whole)
    editor.tell("textDocument/didSave", **here)
    while not any(it["code"] == "E-CLAIM" for it in editor.diagnostics()):
        pass  # the check that runs when nobody types


PLANTS = {
    "compile": "eval('\"canary\"')",
    "exec": "exec('venom = 1')",
    "import": "try:\n import canary_module\nexcept ImportError:\n pass",
    "os.system": "import os\nos.system(': venom')",
    "subprocess.Popen": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', ''])",
    "open": "open('../outside', 'w')",
    "os.mkdir": "import os\nos.mkdir('../beside')",
    "pickle.find_class": "import pickle\npickle.loads(b'cbuiltins\\nprint\\n.')",
    "ctypes.dlopen": "import ctypes\ntry:\n ctypes.CDLL('canary.so')\nexcept OSError:\n pass",
}
BROKEN = """\
import dsfc.api.pipeline as it
classify = it.classify
def evaluated(system):
    name = system.inputs[0].name
    eval(name, {name: 0})
    return classify(system)
it.classify = evaluated
"""


@pytest.mark.ci
def test_what_is_planted_is_seen(watched: Watched) -> None:
    plants = [("python", program) for program in PLANTS.values()]
    _, seen = watched(*plants, ("python", BROKEN), ("show", *ONE))
    found = strange(seen, *ALWAYS, *EDITED, *IMPORTED, *TRACED)
    assert [event for event in PLANTS if not any(it["event"] == event for it in found)] == []
    assert any(it["dsfc"] == "dsfc.planted:evaluated" and it["kind"] == "canary" for it in found)


@pytest.mark.ci
def test_texts_stand_in_docstrings_and_comments_of_a_module(folder: Path) -> None:
    tree = ast.parse(load(folder / "canaries.dsf", "canary_one").module("torch").text)
    said = [
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and ast.get_docstring(node) is not None
        and isinstance(node.body[0], ast.Expr)
    ]
    assert any("venom" in ast.dump(it) for it in said)
    assert [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and "venom" in str(node.value) and node not in said
    ] == []
