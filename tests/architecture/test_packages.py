"""The list of packages in pyproject.toml, which setuptools cannot discover through a map."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def project(root: Path) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def packages_of(folder: Path, name: str) -> set[str]:
    """Names of the packages at and below a folder, which is called `name` when installed."""
    return {
        ".".join((name, *init.parent.relative_to(folder).parts))
        for init in folder.rglob("__init__.py")
    }


def test_the_list_of_packages_equals_the_folders(project: dict, root: Path) -> None:
    setuptools = project["tool"]["setuptools"]
    found = set()
    for name, folder in setuptools["package-dir"].items():
        found |= packages_of(root / folder, name)
    assert set(setuptools["packages"]) == found


def test_every_data_file_is_packaged(project: dict, root: Path) -> None:
    setuptools = project["tool"]["setuptools"]
    data = setuptools["package-data"]
    tops = setuptools["package-dir"]
    missing = []
    for package in setuptools["packages"]:
        top = max((t for t in tops if f"{package}.".startswith(f"{t}.")), key=len)
        folder = root.joinpath(tops[top], *package.removeprefix(top).split(".")[1:])
        globs = ["*.py", *data.get(package, ())]
        for file in folder.iterdir():
            if file.is_file() and not any(file.match(glob) for glob in globs):
                missing.append(str(file.relative_to(root)))
    assert missing == []


def test_every_folder_with_modules_is_a_package(root: Path) -> None:
    folders = {
        file.parent
        for top in ("dsfc", "backends", "grammar", "specs")
        for file in (root / top).rglob("*")
        if file.suffix in {".py", ".j2", ".dsf", ".lark"}
    }
    assert [str(f) for f in sorted(folders) if not (f / "__init__.py").is_file()] == []


def test_the_mixed_in_folders_are_imported_under_one_name_only() -> None:
    assert {"grammar", "specs", "backends"} & set(sys.modules) == set()
