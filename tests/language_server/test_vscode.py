"""The extension for VS Code: packed from the repository, it colours specs and starts the server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dsfc.language_server.words import BACKSLASH
from dsfc.syntax.textmate import textmate_text

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "grammar" / "vscode"
CLIENT = Path(__file__).with_name("activate.cjs")

WORDS = ("q", "W_Δ", "η2", "\\ot", *(f"\\{name}" for name in BACKSLASH))


def manifest() -> dict:
    return json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))


def test_the_versions_are_pinned_and_locked() -> None:
    wanted = manifest()["devDependencies"]
    lock = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert lock[""]["devDependencies"] == wanted
    assert {"@vscode/vsce", "esbuild", "vscode-languageclient"} == set(wanted)
    for name, version in wanted.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
        assert lock[f"node_modules/{name}"]["version"] == version


def test_a_word_is_a_name_or_what_is_begun_with_a_backslash() -> None:
    text = (FOLDER / "language-configuration.json").read_text(encoding="utf-8")
    written = json.loads(text)["wordPattern"]
    assert written["flags"] == "u"  # else \\p is no class of characters
    spelt = written["pattern"].replace(r"[\p{L}\p{N}_]", r"\w").replace(r"\p{L}", r"[^\W\d_]")
    word = re.compile(spelt)
    assert [word.findall(f"x · {it}·(y)") for it in WORDS] == [["x", it, "y"] for it in WORDS]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension, unpacked as VS Code installs it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    if subprocess.run([npm, "ping"], capture_output=True, timeout=60).returncode:
        pytest.skip("the registry of npm cannot be reached")
    copy = tmp_path_factory.mktemp("checkout")
    folder = copy / "grammar" / "vscode"
    built = shutil.ignore_patterns("node_modules", "out", "LICENSE", "*.vsix")
    shutil.copytree(FOLDER, folder, ignore=built)
    shutil.copy(ROOT / "LICENSE", copy)
    shutil.copy(ROOT / "grammar" / "dsf.tmLanguage.json", copy / "grammar")
    for command in (["ci", "--ignore-scripts", "--no-audit", "--no-fund"], ["run", "package"]):
        done = subprocess.run([npm, *command], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    (file,) = folder.glob("*.vsix")
    with zipfile.ZipFile(file) as package:
        package.extractall(copy / "installed")
    return copy / "installed" / "extension"


@pytest.mark.full
def test_the_package_holds_what_its_manifest_names_and_nothing_else(packed: Path) -> None:
    files = {it.relative_to(packed).as_posix() for it in packed.rglob("*") if it.is_file()}
    gives = manifest()["contributes"]
    (language,), (grammar,) = gives["languages"], gives["grammars"]
    named = {manifest()["main"], language["configuration"], grammar["path"]}
    others = {"package.json", "readme.md", "LICENSE.txt"}
    assert files == others | {path.removeprefix("./") for path in named}
    assert (packed / grammar["path"]).read_text(encoding="utf-8") == textmate_text()
    assert grammar["scopeName"] == json.loads(textmate_text())["scopeName"]


@pytest.mark.full
def test_the_extension_starts_the_server_that_its_setting_names(
    packed: Path, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    command = tmp_path / "dsfc"
    command.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "length = int(sys.stdin.buffer.readline().split()[1])\n"
        "sys.stdin.buffer.readline()\n"
        "body = sys.stdin.buffer.read(length)\n"
        f"open({str(said)!r}, 'wb').write(repr(sys.argv[1:]).encode() + b'\\n' + body)\n",
        encoding="utf-8",
    )
    command.chmod(0o755)
    activated(packed, command)
    arguments, _, message = said.read_text(encoding="utf-8").partition("\n")
    assert arguments == "['lsp']"
    assert json.loads(message)["method"] == "initialize"


@pytest.mark.full
def test_a_server_that_cannot_be_started_is_said_with_the_setting(
    packed: Path, tmp_path: Path
) -> None:
    shown = activated(packed, tmp_path / "missing").splitlines()
    assert len([line for line in shown if "missing lsp` did not start" in line]) == 1
    assert "dsf.command" in shown[-1]


def activated(packed: Path, command: Path) -> str:
    """What the extension tells of when it is activated with a command in its setting."""
    node = shutil.which("node")
    assert node is not None
    main = packed / manifest()["main"]
    run = [node, str(CLIENT), str(main), str(command)]
    return subprocess.run(run, capture_output=True, timeout=60, text=True).stdout
