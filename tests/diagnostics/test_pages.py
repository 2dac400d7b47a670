"""The specs on the pages of the codes: `check` finds in the wrong one what the page is about."""

import pytest

from dsfc.diagnostics.catalogue import CODES, examples
from dsfc.diagnostics.report import DiagnosticError, Severity, Stage
from dsfc.mixer.resolve import resolve
from dsfc.source import Source
from dsfc.syntax.parse import parse

# Found by the derivation and after it; the tests of linearity and of claims have the wrong specs.
LATER = {"E-NONLINEAR-STATE", "E-UNSUPPORTED", "E-CLAIM-FORM", "E-CLAIM"}
TYPED = [
    code
    for code, kind in CODES.items()
    if examples(code) and kind.severity is Severity.ERROR and kind.stage is not Stage.PARSE
]


@pytest.mark.parametrize("code", [code for code in TYPED if code not in LATER])
def test_the_wrong_spec_raises_the_code(code):
    with pytest.raises(DiagnosticError) as caught:
        resolve(parse(Source("wrong.dsf", examples(code)[0])))
    assert code in {it.code for it in caught.value.diagnostics}


@pytest.mark.parametrize("code", [code for code in CODES if examples(code)])
def test_the_right_spec_raises_nothing(code):
    assert resolve(parse(Source("right.dsf", examples(code)[1]))).name
