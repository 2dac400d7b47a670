"""The table of forms: a row for each, from the file of its name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from dsfc.plan.forms.row import Candidate, FormRow
from dsfc.plan.scan_ir import Form

FORMS: Mapping[Form, FormRow] = {
    form: import_module(f"{__package__}.{form.value}").ROW for form in Form
}
"""Form → its row."""


def narrowed(form: Form, candidate: Candidate) -> Form:
    """Returns the form that runs a block in place of a more general one; that one, if none does."""
    rows = (row for row in FORMS.values() if form in row.narrows and row.takes(candidate))
    return next((row.form for row in rows), form)
