#!/usr/bin/env bash
# Three mixers of one layer each on SHIFT, CUMSUM and CUMMAX: compiles, shows, verifies, trains, draws.
# Makes .venv and installs what is missing. `--quick` verifies less and trains a few steps.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=examples/kernels
. examples/harness/steps.sh

mixers=(dlr s4d gla)
run_dsfc show specs/dlr.dsf
run_dsfc show specs/dlr.dsf --form phi
for mixer in "${mixers[@]}"; do
  run_dsfc compile "specs/$mixer.dsf" -o "$modules/$mixer.py"
done
if asked --quick; then verify gla; else verify "${mixers[@]}"; fi

say "Training: one layer of each mixer, on SHIFT, CUMSUM and CUMMAX"
.venv/bin/python -m kernels.demo "$@"
