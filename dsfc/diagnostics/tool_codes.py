"""Codes of the tool around the language: files, outputs, what is not there yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsfc.diagnostics.report import Diagnostic, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported(Diagnostic):
    """The mixer is understood, but this version cannot compile it.

    What is missing is named in the message. Where `compile` reports it, `check` and `show` work:
    the mixer is typed, lowered and classified. A sum over a window of tokens is not typed, so that
    they report it too. Systems with a finite state compile, and so do sums over tokens whose
    summand reads values of the two tokens alone: those run over all pairs. A sum without a finite
    state that holds a product over the tokens between, another sum, or a linear map of a pair does
    not.

    ```dsf wrong
    mixer attention extends qkv {
      param w : d -> h
      a = sigmoid(w u)
      y = sum[j ≤ i](prod[j < l ≤ i](a[l]) * exp(q · k[j]) * v[j])
    }
    ```

    The same weights with a finite state:

    ```dsf right
    mixer attention extends qkv {
      param w : d -> h
      a = sigmoid(w u)
      y = sum[j ≤ i](prod[j < l ≤ i](a[l]) * (exp(q) · exp(k[j])) * v[j])
    }
    ```
    """

    code: ClassVar[str] = "E-UNSUPPORTED"
    stage: ClassVar[Stage] = Stage.COMPILE
    template: ClassVar[str] = "not supported yet: {what}"
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentOnly(Diagnostic):
    """The mixer runs only token by token, and `--require-parallel` forbids that.

    Every system of finite states runs in mode `recurrent`. Where its states read each other, its
    decays may be 0 or negative, or a full matrix depends on the token, there is no mode that
    computes many tokens at once. `check` says so without an error; with `--require-parallel` it is
    an error of `check` and `compile`.

    ```console wrong
    $ echo "mixer pair { dims d; input u : d; state s, t : d
      s = u * t[i-1] + u; t = 1/2 * s[i-1]; y = s + t }" > pair.dsf
    $ dsfc check --require-parallel pair.dsf
    ```

    A state that feeds another and takes nothing from it is a scan before a scan:

    ```console right
    $ echo "mixer line { dims d; input u : d; state s, t : d
      s = sigmoid(u) * s[i-1] + u; t = 1/2 * t[i-1] + s; y = s + t }" > line.dsf
    $ dsfc check --require-parallel line.dsf
    ```
    """

    code: ClassVar[str] = "E-RECURRENT-ONLY"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = "{mixer} runs one token after another only: {why}"
    mixer: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoStep(Diagnostic):
    """A module was asked to continue from a state, but its mixer reads later tokens.

    A state holds what came before. Where a state of the mixer runs backwards in time, or a sum
    without a finite state runs over tokens to come, each output needs the tokens behind it too: no
    sequence can be cut in two, and there is no next token. Such a module mixes whole sequences,
    masked and packed ones too. It has no `step`, takes no `state` and returns none. `dsfc model`
    and `compile --signature fla`, whose layers go on from a cache, refuse it. `dsfc show` says
    which state runs backwards; `claim causal` finds it in time.

    ```console wrong
    $ dsfc compile dlr_bidirectional
    $ python -c "import torch; from dlr_bidirectional import *
      DlrBidirectional(d=4, n=2, m=2).step(torch.ones(1, 4), None)"
    ```

    It mixes whole sequences:

    ```console right
    $ dsfc compile dlr_bidirectional
    $ python -c "import torch; from dlr_bidirectional import *
      DlrBidirectional(d=4, n=2, m=2)(torch.ones(1, 5, 4))"
    ```
    """

    code: ClassVar[str] = "E-STEP"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = (
        "{mixer} has no step and takes no state: {states} backwards in time, "
        "so that an output needs all tokens to come"
    )
    mixer: str
    states: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoLayer(Diagnostic):
    """`--layer` was asked for, but no layer of a model stands around the mixer.

    A layer takes and gives `[B, L, d]`. The only input of a mixer is the layer's own if it has one
    axis; otherwise each input is a linear map of it, as queries and keys are. A linear map gives
    numbers of any sign, so that an input that promises one has none. The width of the layer is its
    argument `d`: where the mixer's input has another axis, no axis is called so.

    ```console wrong
    $ echo "mixer step { dims d; input u : d; Δ : d positive; state s : d
      s = exp(-Δ) * s[i-1] + u; y = s }" > step.dsf
    $ dsfc compile --layer step.dsf
    ```

    Make the positive value in the mixer:

    ```console right
    $ echo "mixer step { dims d; input u : d; x : d; state s : d
      Δ = softplus(x); s = exp(-Δ) * s[i-1] + u; y = s }" > step.dsf
    $ dsfc compile --layer step.dsf
    ```
    """

    code: ClassVar[str] = "E-LAYER"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = "no layer around {mixer}: {problem}"
    mixer: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTensorParallel(Diagnostic):
    """`--tensor-parallel` was asked for, but processes cannot share out the heads of the mixer.

    Each process has some of the heads, and mixes as if there were no others. So no definition may
    sum over them, count them or rename them, and the output lies along them. The output map of a
    layer joins them: a spec needs none of its own. Heads are the axis that is declared as `heads`.

    ```console wrong
    $ echo "mixer joined { dims d, heads h = 2, n = d / h; input u : d
      param W_V : d -> h × n; W_O : h × n -> d; state S : h × n
      S = 1/2 * S[i-1] + W_V u; y = W_O S }" > joined.dsf
    $ dsfc compile --layer --tensor-parallel joined.dsf
    ```

    Leave the output map to the layer:

    ```console right
    $ echo "mixer joined { dims d, heads h = 2, n = d / h; input u : d
      param W_V : d -> h × n; state S : h × n
      S = 1/2 * S[i-1] + W_V u; y = S }" > joined.dsf
    $ dsfc compile --layer --tensor-parallel joined.dsf
    ```
    """

    code: ClassVar[str] = "E-TENSOR-PARALLEL"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = "the heads of {mixer} cannot be shared out: {problem}"
    mixer: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProblem(Diagnostic):
    """A file cannot be read or written.

    The message has the path and what the system said. A spec is a text file in UTF-8.

    ```console wrong
    $ dsfc check mine.dsf
    ```

    After it was written:

    ```console right
    $ dsfc new mine
    $ dsfc check mine.dsf
    ```
    """

    code: ClassVar[str] = "E-FILE"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = "{path}: {problem}"
    path: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwrite(Diagnostic):
    """The file to write exists, and dsfc may not replace it.

    `compile` replaces a file only if dsfc wrote it and nobody has edited it since. Anything else
    is kept, unless `--force` is given. A symbolic link is never written through.

    ```console wrong
    $ echo "my notes" > gla.py
    $ dsfc compile gla
    ```

    Under another name:

    ```console right
    $ echo "my notes" > gla.py
    $ dsfc compile gla --out layer.py
    ```
    """

    code: ClassVar[str] = "E-OUTPUT"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = "{path}: {problem}; not overwritten, pass --force to replace it"
    path: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownBackend(Diagnostic):
    """No backend of that name is installed.

    The message lists those that are.

    ```console wrong
    $ dsfc compile gla --backend tritn
    ```

    Spelt as listed:

    ```console right
    $ dsfc compile gla --backend triton
    ```
    """

    code: ClassVar[str] = "E-BACKEND"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = "no backend `{name}`; there are: {known}"
    name: str
    known: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhichMixer(Diagnostic):
    """The text has several mixers, or none of the name that was given.

    Without `--mixer NAME` the mixer named like the file is taken, or the only one in the text.

    ```console wrong
    $ dsfc show gla --mixer gal
    ```

    The one that is there:

    ```console right
    $ dsfc show gla --mixer gla
    ```
    """

    code: ClassVar[str] = "E-MIXER"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = "{problem}; {known}"
    problem: str
    known: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion(Diagnostic):
    """Weights of one mixer, or of a published layer, cannot be turned into another's.

    A conversion needs a proof that both mixers are one function of equal parameters, weights of the
    first, and equal outputs of both modules. With a layout map it needs the tensors that the map
    declares, and equal outputs of the published layer and the module where the layer is run. The
    message names what is missing. Nothing is written.

    ```console wrong
    $ dsfc compile linear_attn
    $ python -c "import torch, linear_attn
      torch.save(linear_attn.LinearAttn(d=8).state_dict(), 'w.pt')"
    $ dsfc convert linear_attn gla w.pt --out v.pt
    ```

    To a mixer that is the same function, here itself:

    ```console right
    $ dsfc compile linear_attn
    $ python -c "import torch, linear_attn
      torch.save(linear_attn.LinearAttn(d=8).state_dict(), 'w.pt')"
    $ dsfc convert linear_attn linear_attn w.pt --out v.pt
    ```
    """

    code: ClassVar[str] = "E-CONVERT"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = "weights of `{a}` cannot be turned into weights of `{b}`: {problem}"
    a: str
    b: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutProblem(Diagnostic):
    r"""A layout map is wrong, or is none of the module that it is for.

    A map says for each entry of an emitted module's `state_dict` which published tensors it is made
    of, and how. The operations are transpose, reshape, split, flip, permute, repeat, block_diagonal
    and blocks, and the functions neg, exp and log. Every entry has one row of its very shape; every
    published number is in one row, or its tensor is named as unused. The message names the row or
    the operation that is wrong. Nothing is written.

    ```console wrong
    $ echo "mixer mean { dims d; input u : d; param w : d; state s : d
      s = 1/2 * s[i-1] + w * u; y = s }" > mean.dsf
    $ printf '%s\n' 'title = "means"' 'spec = "mean.dsf"' '[source]' 'gain = ["d"]' \
      '[entry.w]' 'of = "gain"' 'by = [{ op = "mirror", axis = 0 }]' > mean.toml
    $ python -c "import torch; torch.save({'gain': torch.ones(4)}, 'theirs.pt')"
    $ dsfc convert --layout mean.toml theirs.pt --out ours.pt
    ```

    By an operation that there is:

    ```console right
    $ echo "mixer mean { dims d; input u : d; param w : d; state s : d
      s = 1/2 * s[i-1] + w * u; y = s }" > mean.dsf
    $ printf '%s\n' 'title = "means"' 'spec = "mean.dsf"' '[source]' 'gain = ["d"]' \
      '[entry.w]' 'of = "gain"' 'by = [{ op = "flip", axis = 0 }]' > mean.toml
    $ python -c "import torch; torch.save({'gain': torch.ones(4)}, 'theirs.pt')"
    $ dsfc convert --layout mean.toml theirs.pt --out ours.pt
    ```
    """

    code: ClassVar[str] = "E-LAYOUT"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = "{problem}"
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFormat(Diagnostic):
    """A certificate was written by another version of dsfc.

    Its format names the version of the types it is made of. An older document lacks the fields that
    came later, and dsfc does not guess them: run `dsfc equiv --certificate` again.

    ```console wrong
    $ dsfc equiv linear_attn linear_attn --certificate proof.json
    $ sed -i.old 's,dsfc-proof/[0-9]*,dsfc-proof/1,' proof.json
    $ dsfc check-proof proof.json
    ```

    As this version writes it:

    ```console right
    $ dsfc equiv linear_attn linear_attn --certificate proof.json
    $ dsfc check-proof proof.json
    ```
    """

    code: ClassVar[str] = "E-CERTIFICATE"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = "{path} has the format {form}; this version reads {wanted}"
    path: str
    form: str
    wanted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLifted(Diagnostic):
    r"""A PyTorch module, or a part of it, has no spec.

    `dsfc lift` traces the module and looks at each operation. An operation that a spec cannot
    express is named with its line: sums over the batch, tokens to come, random values, a loop whose
    rounds differ, a state that is updated by a function that is not affine in it. If the spec and
    the module give different outputs or gradients at other lengths, the message says so, and
    nothing is written.

    ```console wrong
    $ printf 'def last(x):\n  return x.flip(1)\n' > mine.py
    $ dsfc lift mine.py:last
    ```

    A sum over the tokens so far is a state:

    ```console right
    $ printf 'def sums(x):\n  return x.cumsum(1)\n' > mine.py
    $ dsfc lift mine.py:sums
    ```
    """

    code: ClassVar[str] = "E-LIFT"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = "{problem}"
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReport(Diagnostic):
    """A mixer cannot be reported on with what is given.

    The weights or the data do not fit the mixer; or the mixer has an abstract map, which has no
    values; or a library that draws is not installed: `pip install 'dsfc[report]'` brings matplotlib
    and latex2mathml. Nothing is written.

    ```console wrong
    $ python -c "import numpy; numpy.save('x.npy', numpy.zeros((8, 16, 3, 3)))"
    $ dsfc report retnet --data x.npy -o retnet.html
    ```

    Tokens have the axes of the input, here one:

    ```console right
    $ python -c "import numpy; numpy.save('x.npy', numpy.zeros((8, 16)))"
    $ dsfc report retnet --data x.npy -o retnet.html
    ```
    """

    code: ClassVar[str] = "E-REPORT"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = "no report of `{mixer}`: {problem}"
    mixer: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoExport(Diagnostic):
    """A layer cannot be exported to what was asked for.

    The message names the reason: a mixer that reads later tokens has no step; ONNX has no complex
    numbers, and an operator of them has no form in real ones; a library is not installed
    (`pip install 'dsfc[export]'` brings onnx, onnxscript and onnxruntime); the recurrence is not
    proved to be a rule of the operator that `--operator` names; or the program that was written
    gives other numbers than its layer, since every program is run beside its layer first. Nothing
    is written.

    ```console wrong
    $ dsfc export dlr_bidirectional --size d=4 --size n=2 --size m=2 --step -o step.pt2
    ```

    It mixes whole sequences:

    ```console right
    $ dsfc export dlr_bidirectional --size d=4 --size n=2 --size m=2 -o whole.pt2
    ```
    """

    code: ClassVar[str] = "E-EXPORT"
    stage: ClassVar[Stage] = Stage.TOOL
    template: ClassVar[str] = "{layer} is not exported to {target}: {problem}"
    layer: str
    target: str
    problem: str
