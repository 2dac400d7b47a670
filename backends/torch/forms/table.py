"""The table of forms in torch: a row for each, from the file of its name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from dsfc.plan.scan_ir import Form

from .row import TorchForm

FORMS: Mapping[Form, TorchForm] = {
    form: import_module(f"{__package__}.{form.value}").ROW for form in Form
}
"""Form → how torch runs it."""
