# Sourced, not run: `environment test` makes or completes .venv with an extra of pyproject.toml, or with several at once.
#
# PYTHON names the interpreter to start from. Everything is installed at the versions of
# constraints.txt; what is there already is left alone, so calling it again takes a moment.
# PyTorch comes first: the newest one may differ from the pinned one, and is large.
# pip reads its own settings, so PIP_EXTRA_INDEX_URL can name PyTorch's index of CPU builds.

environment() {
  local extra wanted missing=()
  wanted=$(cat pyproject.toml constraints.txt | cksum)
  for extra in "$@"; do
    if [ "$(cat ".venv/.complete-$extra" 2>/dev/null)" != "$wanted" ]; then
      missing+=("$extra")
    fi
  done
  if [ ${#missing[@]} = 0 ]; then
    if .venv/bin/python -c 'import dsfc' 2>/dev/null; then
      return 0
    fi
    missing=("$@")
  fi
  if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    echo "Making a virtual environment in .venv"
    "$(interpreter)" -m venv --clear .venv
    missing=("$@")
  fi
  echo "Installing dsfc and what '${missing[*]}' needs into .venv"
  .venv/bin/python -m pip install --quiet --constraint constraints.txt torch
  .venv/bin/python -m pip install --quiet --constraint constraints.txt --editable ".[$(IFS=,; echo "${missing[*]}")]"
  for extra in "${missing[@]}"; do
    echo "$wanted" > ".venv/.complete-$extra"
  done
}

# Installs a browser and npm, with which the playground is tested, where Debian's packages can be.
# Fails elsewhere; the tests of the playground are skipped then.
browser() {
  if command -v chromium > /dev/null && command -v npm > /dev/null; then
    return 0
  fi
  if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "no chromium or npm here, and nothing to install them with"
    return 1
  fi
  echo "Installing chromium and npm"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq --no-install-recommends chromium nodejs npm
}

# Prints the first interpreter that is new enough.
interpreter() {
  local name
  for name in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
    if "$name" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$name"
      return 0
    fi
  done
  echo "No Python 3.11 or newer found; name one with PYTHON=…" >&2
  return 1
}
