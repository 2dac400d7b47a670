"""What a notebook shows of a mixer."""

from __future__ import annotations

from html import escape

from dsfc.mixer.ir import Mixer
from dsfc.mixer.render import render


def html(mixer: Mixer) -> str:
    """Returns every name of a mixer with its axes and its value, as `dsfc show --stage mixer`."""
    head, _, rest = render(mixer).partition("\n")
    return f'<pre style="line-height: 1.3"><b>{escape(head)}</b>\n{escape(rest)}</pre>'
