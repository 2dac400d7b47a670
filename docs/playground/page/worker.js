// The compiler: Pyodide with dsfc in it, in a thread of its own. It answers one question at a time.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const ready = start();

async function start() {
  const archives = ["site.zip", "bytecode.zip"].map((name) => fetched(name));
  const python = await loadPyodide({
    indexURL: new URL("pyodide/", import.meta.url).href,
    stdLibURL: new URL("python_stdlib.zip", import.meta.url).href,
  });
  const packages = python.runPython("import site; site.getsitepackages()[0]");
  for (const archive of archives) {
    python.unpackArchive(await archive, "zip", { extractDir: packages });
  }
  python.runPython("import playground");
  return python.globals.get("playground").answer;
}

async function fetched(name) {
  const answer = await fetch(new URL(name, import.meta.url));
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer.arrayBuffer();
}

ready.then(
  () => self.postMessage({ ready: true }),
  (problem) => self.postMessage({ ready: false, fault: String(problem) }),
);

self.onmessage = async ({ data }) => {
  const answer = await ready;
  self.postMessage({ id: data.id, ...JSON.parse(answer(JSON.stringify(data.question))) });
};
