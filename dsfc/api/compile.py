"""Compiles a spec into a module that stands in a file."""

from __future__ import annotations

import os
from pathlib import Path

from dsfc.api.pipeline import load
from dsfc.emit.module import destination, write
from dsfc.layer_parts import LayerSignature
from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.resource_limits import bounded


def compile_spec(
    path: str | os.PathLike[str],
    backend: str = "torch",
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    mixer: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    runtime: str = "inside",
    layer: bool = False,
    context_parallel: bool = False,
    tensor_parallel: bool = False,
    signature: str = LayerSignature.DSFC,
) -> Path:
    """Compiles a spec and returns the path of the module.

    Args:
        path: a spec file, or the bare name of a shipped spec.
        backend: what to print the module for.
        out: file to write, or folder to write into, which is made if a slash stands behind it;
            `./<mixer>.py` by default.
        force: replace a file that dsfc did not write, or that was edited since.
        mixer: which mixer of the text.
        limits: bounds on size, depth, number, time and memory.
        runtime: `inside`: the module holds the functions that all modules share. `beside`: it
            imports them from `dsfc_runtime_<hash>.py`, which is written into its folder.
        layer: whether the module holds a layer of a model around the mixer too.
        context_parallel: whether processes may share a sequence: `forward` takes their group.
        tensor_parallel: whether processes may share out the heads of the layer.
        signature: how the layer is called: `dsfc`, as its mixer; `fla`, besides in a class that is
            called as layers of flash-linear-attention are.

    Raises:
        DiagnosticError: with every problem found; nothing is written then.
        ValueError: `runtime` or `signature` is neither, `tensor_parallel` or `fla` is asked for
            without a layer, or `fla` and `context_parallel` together.
    """
    with bounded(f"compile {os.fspath(path)}", limits):
        module = load(path, mixer, limits).module(
            backend, runtime, layer, context_parallel, tensor_parallel, signature
        )
    target = destination(module, out)
    write(module, target, force)
    return target
