#!/usr/bin/env bash
# Builds the playground, the compiler in a browser, into build/playground/page: static files.
#   bash docs/playground/build.sh             builds it
#   bash docs/playground/build.sh --serve     builds it and serves it on http://localhost:8000
# Needs Python 3.11, Node.js 18 and npm. What is built from the same files already is left alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. .ci/environment.sh
here=docs/playground
out=build/playground
page=$out/page

mkdir -p $out
if command -v flock > /dev/null; then  # two builds at once wait for each other
  exec 9> $out/lock
  flock 9
fi
wanted=$(find dsfc backends grammar specs $here docs/_ext pyproject.toml constraints.txt -type f \
  -not -name '*.pyc' -print0 | sort -z | xargs -0 cksum | cksum)
if [ "$(cat $out/complete 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$page" $out/source $out/wheel $out/site $out/complete
  mkdir -p "$page/pyodide" $out/npm $out/source

  echo "Installing what the page is made of"
  cp $here/package.json $here/package-lock.json $out/npm/
  npm ci --prefix $out/npm --no-audit --no-fund --silent
  [ -x $out/venv/bin/python ] || "$(interpreter)" -m venv $out/venv
  python=$out/venv/bin/python

  echo "Building the wheel of dsfc"
  # From a copy: what builds a wheel writes beside the sources, as other builds of this folder do.
  tar -cf - --exclude=__pycache__ pyproject.toml README.md LICENSE backends dsfc grammar specs |
    tar -xf - -C $out/source
  "$python" -m pip wheel --quiet --no-deps --wheel-dir $out/wheel ./$out/source
  echo "Collecting packages for the browser"
  "$python" $here/assemble.py $out $out/wheel/dsfc-*.whl
  echo "Compiling them"
  node $here/compile.mjs $out

  modules=$out/npm/node_modules
  NODE_PATH=$modules $modules/.bin/esbuild $here/app/main.js --bundle --minify --format=esm \
    --target=es2022 --loader:.json=json --log-level=warning --outfile="$page/main.js"
  cp $here/page/* "$page/"
  for file in pyodide.mjs pyodide.asm.mjs pyodide.asm.wasm pyodide-lock.json; do
    cp "$modules/pyodide/$file" "$page/pyodide/"
  done
  echo "$wanted" > $out/complete
fi
echo "$page/index.html: $(du -sk "$page" | cut -f1) KiB; serve the folder, with no file beside it:"
echo "  python3 -m http.server --directory $page 8000"
if [ "${1:-}" = --serve ]; then
  exec 9>&-
  exec "$(interpreter)" -m http.server --bind 127.0.0.1 --directory "$page" 8000
fi
