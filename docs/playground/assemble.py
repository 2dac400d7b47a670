"""Packs what the compiler imports in a browser into a zip file: `python assemble.py OUT WHEEL`.

Packages in pure Python are those of pip at the versions of constraints.txt, python-flint is its
wheel for WebAssembly. NumPy publishes no such wheel: Pyodide builds one, and its lock file has the
hash. It comes from where Pyodide publishes it or, where that cannot be reached, from a package that
carries the same file; either way its hash is compared.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PURE = ("click", "jinja2", "lark", "latex2mathml", "markupsafe", "mpmath", "networkx", "sympy")
BESIDE = ("picture.py", "spectrum.py")
"""Files of docs/_ext that draw the pages of the mixers, and this page."""

UNUSED = {"__pycache__", "bin", "f2py", "include", "tests"}
"""Folders of packages that nothing of the page imports."""

PUBLISHED = "https://cdn.jsdelivr.net/pyodide/v{version}/full/{file}"
CARRIER, CARRIED = "open-webui==0.12.4", "open_webui/frontend/pyodide/{file}"
PATIENCE = 20
"""Seconds to wait for an answer."""


def main(out: Path, wheel: Path) -> None:
    """Writes `OUT/page/site.zip`.

    Args:
        out: the folder to build in.
        wheel: that of dsfc.
    """
    site, kept = out / "site", out / "wheels"
    kept.mkdir(exist_ok=True)
    _pip("install", "--target", str(site), "--no-compile", str(wheel), *PURE)
    for native in site.rglob("*.so"):  # for this machine; the packages do without
        native.unlink()
    _unpack(_flint(kept, _locked(out)["info"]), site)
    _unpack(_numpy(kept, out), site)
    for file in sorted((HERE / "python").glob("*.py")):
        shutil.copy(file, site)
    for name in BESIDE:
        shutil.copy(HERE.parent / "_ext" / name, site)
    with zipfile.ZipFile(out / "page" / "site.zip", "w", zipfile.ZIP_DEFLATED) as pack:
        for file in sorted(f for f in site.rglob("*") if f.is_file()):
            where = file.relative_to(site)
            if where.parts[0] == "dsfc" or UNUSED.isdisjoint(where.parts):
                pack.write(file, where)


def _locked(out: Path) -> dict[str, dict[str, object]]:
    """Pyodide's lock file: itself, and the packages that are built for it."""
    file = out / "npm" / "node_modules" / "pyodide" / "pyodide-lock.json"
    locked: dict[str, dict[str, object]] = json.loads(file.read_text(encoding="utf-8"))
    return locked


def _flint(kept: Path, pyodide: dict[str, object]) -> Path:
    """The wheel of python-flint for the Python of Pyodide."""
    version = ".".join(str(pyodide["python"]).split(".")[:2])
    platform = f"pyemscripten_{pyodide['abi_version']}_wasm32"
    abi = f"cp{version.replace('.', '')}"
    if not list(kept.glob("python_flint-*.whl")):
        _pip("download", "--dest", str(kept), "--only-binary", ":all:", "--platform", platform,
             "--python-version", version, "--implementation", "cp", "--abi", abi,
             "python-flint")  # fmt: skip
    (wheel,) = kept.glob("python_flint-*.whl")
    return wheel


def _numpy(kept: Path, out: Path) -> Path:
    """The wheel of NumPy that Pyodide builds."""
    locked = _locked(out)["packages"]["numpy"]
    assert isinstance(locked, dict)
    file, digest = kept / locked["file_name"], locked["sha256"]
    if file.exists() and _digest(file) == digest:
        return file
    package = json.loads((out / "npm/node_modules/pyodide/package.json").read_text("utf-8"))
    address = PUBLISHED.format(version=package["version"], file=file.name)
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            file.write_bytes(answer.read())
    except OSError as problem:
        print(f"{address}: {problem}; taken from {CARRIER}", flush=True)
        _carried(file, out / "carrier")
    if _digest(file) != digest:
        raise SystemExit(f"{file} is not the file that Pyodide's lock file names")
    return file


def _carried(file: Path, folder: Path) -> None:
    """Takes a file out of a wheel, which is then thrown away: it is large."""
    _pip("download", "--dest", str(folder), "--only-binary", ":all:", "--ignore-requires-python",
         CARRIER)  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        file.write_bytes(archive.read(CARRIED.format(file=file.name)))
    shutil.rmtree(folder)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _unpack(wheel: Path, site: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)


def _pip(command: str, *words: str) -> None:
    """Runs pip, which looks for no dependency: all that is wanted is listed."""
    pinned = ("--constraint", str(ROOT / "constraints.txt"))
    subprocess.run(
        [sys.executable, "-m", "pip", command, "--quiet", "--no-deps", *pinned, *words], check=True
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
