"""Sphinx: how these pages are built. Code cells run; a cell that fails fails the build."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "dsfc"
author = "the dsfc authors"
copyright = author
version = release = installed("dsfc")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
extensions += [
    "campaigns",
    "dsfc_docs",
    "emitted",
    "gallery",
    "local_kernels",
    "mathml",
    "whole_streams",
]
exclude_patterns = ["_build", "jupyter_execute", "theory/atlas_tables.md"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True
nb_render_markdown_format = "myst"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_preserve_defaults = True
default_role = "code"  # docstrings mark code as Markdown does

html_math_renderer = "mathml"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["dsfc.css"]
html_title = f"dsfc {release}"
