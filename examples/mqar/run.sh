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

mixers=(normalized_attn linear_attn)
for mixer in "${mixers[@]}"; do
  say "dsfc show specs/$mixer.dsf"
  .venv/bin/dsfc show "specs/$mixer.dsf"
  say "dsfc show specs/$mixer.dsf --form kronecker"
  .venv/bin/dsfc show "specs/$mixer.dsf" --form kronecker
  say "dsfc show specs/$mixer.dsf --form kronecker --gauge paper"
  .venv/bin/dsfc show "specs/$mixer.dsf" --form kronecker --gauge paper
  say "dsfc compile specs/$mixer.dsf -o $modules/$mixer.py"
  .venv/bin/dsfc compile "specs/$mixer.dsf" -o "$modules/$mixer.py"
done

say "dsfc verify: each module against its definition, in values, gradients and all modes"
running=()
for mixer in "${mixers[@]}"; do  # side by side, one thread each
  OMP_NUM_THREADS=1 .venv/bin/dsfc verify "$modules/$mixer.py" > "$modules/$mixer.txt" 2>&1 &
  running+=($!)
done
failed=0
for process in "${running[@]}"; do wait "$process" || failed=1; done
for mixer in "${mixers[@]}"; do cat "$modules/$mixer.txt"; done
[ "$failed" = 0 ]

say "Training: each mixer in a model of two layers, on multi-query associative recall"
.venv/bin/python "$here/demo.py" "$@"
