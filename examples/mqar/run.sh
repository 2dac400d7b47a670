#!/usr/bin/env bash
# From two specs to two trained models: compiles, shows, verifies, trains, draws.
# Makes .venv and installs what is missing. `--quick` trains a few steps only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. .ci/environment.sh
environment demo

here=examples/mqar
modules=$here/generated
mkdir -p "$modules"
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

for mixer in normalized_attn linear_attn; do
  say "dsfc show specs/$mixer.dsf"
  .venv/bin/dsfc show "specs/$mixer.dsf"
  say "dsfc compile specs/$mixer.dsf -o $modules/$mixer.py"
  .venv/bin/dsfc compile "specs/$mixer.dsf" -o "$modules/$mixer.py"
  say "dsfc verify $modules/$mixer.py"
  .venv/bin/dsfc verify "$modules/$mixer.py"
done

say "Training: each mixer in a model of two layers, on multi-query associative recall"
.venv/bin/python "$here/demo.py" "$@"
