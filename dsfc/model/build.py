"""Modules → a model, and the model → the texts of a folder that transformers loads."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePath

from jinja2 import Environment, FunctionLoader, StrictUndefined

from dsfc.emit.module import ModuleText
from dsfc.emit.names import file_name
from dsfc.model.ir import Model, Part, Value
from dsfc.plan.whole_layer import layer_name
from dsfc.python_text import parsed

SIZE = 16
"""What a size of a layer is for which neither its spec nor the user gives one."""

PLACE = ("device", "dtype")
"""Arguments of a layer that say where it is, and not what."""

TEMPLATES = {
    "configuration_mixer.py": "configuration.py.j2",
    "modeling_mixer.py": "modeling.py.j2",
    "train.py": "train.py.j2",
    "README.md": "readme.md.j2",
}
"""File of the folder → its template."""

CONFIG = "config.json"
"""The file of the folder that transformers reads first."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The files of a model.

    Attributes:
        model: what they make.
        texts: by name of the file, but emitted modules.
        modules: emitted modules, by name of the file.
    """

    model: Model
    texts: Mapping[str, str]
    modules: Mapping[str, ModuleText]


def part(text: ModuleText, sizes: Mapping[str, int]) -> Part:
    """Returns the layer of an emitted module, with all its arguments.

    Args:
        text: the module, with a layer.
        sizes: by name of the argument; those of other layers are passed over.
    """
    layer = layer_name(text.class_name)
    arguments = _arguments(text, layer).items()
    return Part(text.mixer, text, layer, {n: sizes.get(n, value) for n, value in arguments})


def folder(model: Model) -> Folder:
    """Returns the files of a model.

    Args:
        model: parts, their order, and sizes.
    """
    taken = {*TEMPLATES, CONFIG}
    modules: dict[str, ModuleText] = {}
    for p in model.parts:
        name = file_name(p.name)
        while name.lower() in taken:
            name = f"{PurePath(name).stem}_.py"
        taken.add(name.lower())
        modules[name] = p.text
    stems = (PurePath(name).stem for name in modules)
    context = {
        "model": model,
        "title": _listed([p.name for p in model.parts]),
        "model_type": "_".join(["dsfc", *(p.name for p in model.parts)]),
        "file_of": dict(zip((p.name for p in model.parts), stems, strict=True)),
        "pattern": json.dumps(model.pattern),
    }
    templates = _environment()
    texts = {n: templates.get_template(t).render(context) for n, t in TEMPLATES.items()}
    texts[CONFIG] = json.dumps(_config(model, context["model_type"]), indent=2) + "\n"
    return Folder(model, texts, modules)


def _config(model: Model, model_type: object) -> dict[str, object]:
    """The configuration that the model starts from."""
    configuration, modeling = (PurePath(name).stem for name in list(TEMPLATES)[:2])
    return {
        "architectures": ["MixerForCausalLM"],
        "auto_map": {
            "AutoConfig": f"{configuration}.MixerConfig",
            "AutoModel": f"{modeling}.MixerModel",
            "AutoModelForCausalLM": f"{modeling}.MixerForCausalLM",
        },
        "model_type": model_type,
        "vocab_size": model.vocabulary,
        "hidden_size": model.width,
        "num_hidden_layers": model.blocks,
        "pattern": list(model.pattern),
        "layer_arguments": {p.name: dict(p.arguments) for p in model.parts},
    }


def _arguments(text: ModuleText, layer: str) -> dict[str, Value]:
    """What the constructor of a layer takes beside width and place, as it was emitted."""
    classes = (n for n in parsed(text.text).body if isinstance(n, ast.ClassDef))
    body = next(c for c in classes if c.name == layer).body
    functions = (n for n in body if isinstance(n, ast.FunctionDef))
    args = next(f for f in functions if f.name == "__init__").args
    pairs = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return {a.arg: _value(default) for a, default in pairs if a.arg not in PLACE}


def _value(default: ast.expr | None) -> Value:
    """The value of an argument of a layer unless somebody says otherwise."""
    if default is None:
        return SIZE
    if isinstance(default, ast.Constant) and isinstance(default.value, int | str | None):
        return default.value
    raise ValueError(f"an argument of a layer is {ast.unparse(default)} unless given")


def _listed(names: Iterable[str]) -> str:
    """`a, b and c`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


@cache
def _environment() -> Environment:
    folder = files("dsfc.model")
    return Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # The result is Python; names are identifiers.
        autoescape=False,
    )
