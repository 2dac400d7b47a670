// Makes out/: the extension in one file, and the grammar of colours that dsfc makes from its parser.
// The license is copied too, since a package holds no file from outside its folder.
import { copyFileSync, mkdirSync } from "node:fs";
import { build } from "esbuild";

const from = (path) => new URL(path, import.meta.url);

mkdirSync(from("out"), { recursive: true });
copyFileSync(from("../dsf.tmLanguage.json"), from("out/dsf.tmLanguage.json"));
copyFileSync(from("../../LICENSE"), from("LICENSE"));
await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: ["src/extension.js"],
  outfile: "out/extension.js",
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node18",
  external: ["vscode"],
  minify: true,
});
