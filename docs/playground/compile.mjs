// Writes what the page needs beside OUT/page/site.zip: the bytecode of what a first compile imports,
// Python's standard library with its own, and the list of the shipped specs. Run as
// `node compile.mjs OUT`. Python runs in Pyodide here too,
// so the bytecode is that of the Python of the page.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const out = path.resolve(process.argv[2]);
const page = path.join(out, "page");
const pyodide = path.join(out, "npm", "node_modules", "pyodide", "pyodide.mjs");

try {
  const { loadPyodide } = await import(pathToFileURL(pyodide));
  const python = await loadPyodide();
  const packages = python.runPython("import site; site.getsitepackages()[0]");
  const archive = new Uint8Array(readFileSync(path.join(page, "site.zip")));
  python.unpackArchive(archive, "zip", { extractDir: packages });
  python.runPython(readFileSync(new URL("bytecode.py", import.meta.url), "utf-8"));
  writeFileSync(path.join(page, "specs.json"), python.runPython("specs()"));
  python.runPython("write('/bytecode.zip', '/python_stdlib.zip')");
  for (const name of ["bytecode.zip", "python_stdlib.zip"]) {
    writeFileSync(path.join(page, name), python.FS.readFile(`/${name}`));
  }
} catch (problem) {
  // Node would print the line of the source that raises it: all of Pyodide is one line.
  console.error(String(problem.message ?? problem));
  process.exit(1);
}
