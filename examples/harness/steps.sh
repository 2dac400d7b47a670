# Sourced by the run.sh of an example, in the repository root, with `here` its folder and the script's arguments.
# Makes .venv and installs what is missing. All that is written goes to build/.
. .ci/environment.sh
environment demo

export PYTHONPATH=$PWD/examples
modules=build/${here##*/}/modules
options=" $* "
mkdir -p "$modules"

# Whether the script was given an option.
asked() { [[ $options == *" $1 "* ]]; }

# A title; bold on a terminal.
say() { if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi; }

# Says what it runs: dsfc with these arguments.
run_dsfc() {
  say "dsfc $*"
  .venv/bin/dsfc "$@"
}

# Verifies the compiled mixers of these names; several side by side, one thread each. `--quick` leaves the long checks out.
verify() {
  local mixer process running=() failed=0 quick=""
  ! asked --quick || quick=--fast
  if [ $# = 1 ]; then
    run_dsfc verify $quick "$modules/$1.py"
    return
  fi
  say "dsfc verify: each module against its definition, in values, gradients and all modes"
  for mixer in "$@"; do
    OMP_NUM_THREADS=1 .venv/bin/dsfc verify $quick "$modules/$mixer.py" > "$modules/$mixer.txt" 2>&1 &
    running+=($!)
  done
  for process in "${running[@]}"; do wait "$process" || failed=1; done
  for mixer in "$@"; do cat "$modules/$mixer.txt"; done
  return "$failed"
}
