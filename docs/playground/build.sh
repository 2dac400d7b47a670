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

wanted=$(find dsfc backends grammar specs $here docs/_ext pyproject.toml constraints.txt -type f \
  -not -name '*.pyc' -print0 | sort -z | xargs -0 cksum | cksum)
if [ "$(cat $out/complete 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$page" $out/wheel $out/site $out/complete
  mkdir -p "$page/pyodide" $out/npm

  echo "Installing what the page is made of"
  cp $here/package.json $here/package-lock.json $out/npm/
  npm ci --prefix $out/npm --no-audit --no-fund --silent
  [ -x $out/venv/bin/python ] || "$(interpreter)" -m venv $out/venv
  python=$out/venv/bin/python
  "$python" -m pip install --quiet --constraint constraints.txt build

  echo "Building the wheel of dsfc"
  "$python" -m build --outdir $out/wheel . > $out/wheel.log 2>&1 || { cat $out/wheel.log; exit 1; }
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
  exec "$(interpreter)" -m http.server --bind 127.0.0.1 --directory "$page" 8000
fi
