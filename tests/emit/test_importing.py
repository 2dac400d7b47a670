"""Emitted modules are imported by path: twice, from two paths, reloaded, two versions at once."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from types import ModuleType

import pytest

import dsfc
from dsfc.emit.importing import import_module

OPERATORS = """NAMESPACE = "dsfc_s6_01234567"
OPS = "torch.ops.dsfc_s6_01234567"
VERSION = {}
"""
TEXT = '"""A module."""\n\nVERSION = {}\n\n\nclass S6:\n    pass\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "s6.py"
    file.write_text(TEXT.format(1), encoding="utf-8")
    return file


def test_the_public_name_is_this_function() -> None:
    assert dsfc.import_module is import_module


def test_importing_twice_gives_one_module(path: Path) -> None:
    assert import_module(path) is import_module(str(path))


def test_from_two_paths_gives_two_modules(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    copy = tmp_path / "other" / "s6.py"
    copy.write_bytes(path.read_bytes())
    one, two = import_module(path), import_module(copy)
    assert one is not two and one.S6 is not two.S6


def test_two_versions_stand_side_by_side(path: Path) -> None:
    one = import_module(path)
    path.write_text(TEXT.format(2), encoding="utf-8")  # same size, same second
    two = import_module(path)
    assert (one.VERSION, two.VERSION) == (1, 2)


def test_reload_reads_the_file_again(path: Path) -> None:
    one = import_module(path)
    path.write_text(TEXT.format(2), encoding="utf-8")
    assert importlib.reload(one) is one
    assert one.VERSION == 2


def test_objects_can_be_pickled(path: Path) -> None:
    module = import_module(path)
    copied = pickle.loads(pickle.dumps(module.S6()))
    assert type(copied) is module.S6


def test_no_byte_code_is_left_behind(path: Path) -> None:
    import_module(path)
    assert [p.name for p in path.parent.iterdir()] == ["s6.py"]


def test_the_path_of_imports_is_not_touched(path: Path) -> None:
    before = list(sys.path)
    import_module(path)
    assert sys.path == before and "s6" not in sys.modules


def test_a_module_that_fails_can_be_mended(path: Path) -> None:
    path.write_text("1 / 0\n", encoding="utf-8")
    with pytest.raises(ZeroDivisionError):
        import_module(path)
    path.write_text(TEXT.format(1), encoding="utf-8")
    assert import_module(path).VERSION == 1


def test_dots_in_the_file_name_make_no_package(path: Path) -> None:
    copy = path.with_name("s6.v2.py")
    copy.write_bytes(path.read_bytes())
    assert "." not in import_module(copy).__name__


@pytest.mark.parametrize(
    "name, message", [("s6.dsf", "compile it first"), ("no.py", "No such file"), (".", "not an")]
)
def test_what_is_no_module(path: Path, name: str, message: str) -> None:
    with pytest.raises(ImportError, match=message):
        import_module(path.parent / name)


def test_two_texts_never_share_operators(path: Path) -> None:
    """PyTorch keeps those that came first, so the second text would run the first one's."""
    path.write_text(OPERATORS.format(1), encoding="utf-8")
    one = import_module(path)
    path.write_text(OPERATORS.format(2), encoding="utf-8")
    two = import_module(path)
    assert one.NAMESPACE == "dsfc_s6_01234567" and two.NAMESPACE.startswith("dsfc_s6_01234567_")
    assert two.OPS == f"torch.ops.{two.NAMESPACE}"
    importlib.reload(one)
    assert one.NAMESPACE == two.NAMESPACE


def test_the_same_text_shares_operators(path: Path, tmp_path: Path) -> None:
    text = OPERATORS.format(1).replace("s6", "s7")
    path.write_text(text, encoding="utf-8")
    copy = tmp_path / "copy.py"
    copy.write_text(text, encoding="utf-8")
    assert import_module(path).NAMESPACE == import_module(copy).NAMESPACE == "dsfc_s7_01234567"


def test_a_module_that_was_imported_otherwise_keeps_its_operators(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ModuleType("other")
    other.NAMESPACE = "dsfc_s8_01234567"
    monkeypatch.setitem(sys.modules, "other", other)
    path.write_text(OPERATORS.format(1).replace("s6", "s8"), encoding="utf-8")
    assert import_module(path).NAMESPACE != other.NAMESPACE
