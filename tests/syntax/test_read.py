"""Files become sources, or a diagnostic that names the file."""

import pytest

from dsfc.diagnostics.report import DiagnosticError
from dsfc.limits import Limits
from dsfc.syntax.read import read_source


def code_of(path, **options):
    with pytest.raises(DiagnosticError) as caught:
        read_source(path, **options)
    (found,) = caught.value.diagnostics
    assert str(path) in str(caught.value)
    return found.code


def test_a_file_is_read_as_it_is(tmp_path):
    path = tmp_path / "a.dsf"
    path.write_bytes("mixer η {\r\n}".encode())
    source = read_source(path)
    assert source.text == "mixer η {\r\n}"
    assert source.name == str(path)


def test_what_cannot_be_read_is_a_diagnostic(tmp_path):
    binary = tmp_path / "b.dsf"
    binary.write_bytes(b"mixer \xff")
    assert code_of(tmp_path / "none.dsf") == "E-FILE"
    assert code_of(tmp_path) == "E-FILE"
    assert code_of(binary) == "E-FILE"


def test_no_more_than_the_limit_is_read(tmp_path):
    path = tmp_path / "c.dsf"
    path.write_text("#" * 100)
    assert code_of(path, limits=Limits(bytes=99)) == "E-LIMIT"
    assert len(read_source(path, limits=Limits(bytes=100)).text) == 100
