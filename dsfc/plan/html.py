"""A plan as a notebook shows it."""

from __future__ import annotations

from html import escape

from dsfc.plan.ir import Plan
from dsfc.plan.render import render


def html(plan: Plan) -> str:
    """Returns the text of a plan, laid out as it stands.

    Args:
        plan: the plan.
    """
    return f"<pre>{escape(render(plan))}</pre>"
