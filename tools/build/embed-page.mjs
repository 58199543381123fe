// Embeds page/, the files that holdfast/ui sends to the browser, into
// src/tools/ui/assets.generated.ts: nothing is read at run time, so bundlers cannot break it. The
// browser's code is one file without a library.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("../../", import.meta.url));
const target = `${root}src/tools/ui/assets.generated.ts`;
const read = (name) => readFileSync(`${root}page/${name}`, "utf8");

const { outputFiles } = await build({
  entryPoints: ["page/main.ts", "page/page.css"].map((name) => root + name),
  outdir: "out",
  bundle: true,
  minify: true,
  write: false,
  format: "esm",
  target: ["es2022", "chrome105", "firefox110", "safari16"],
});
const textOf = (end) => outputFiles.find(({ path }) => path.endsWith(end)).text;

const files = [
  ["index.html", "text/html; charset=utf-8", read("index.html").replaceAll(/\n\s*/g, "\n")],
  ["page.js", "text/javascript; charset=utf-8", textOf(".js")],
  ["page.css", "text/css; charset=utf-8", textOf(".css")],
  ["icon.svg", "image/svg+xml", read("icon.svg")],
];
const lines = files.map(([name, type, text]) => {
  const tag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 16)}"`;
  return `  ${JSON.stringify(name)}: ${JSON.stringify({ type, tag, text })},\n`;
});
const text = `// Made by tools/build/embed-page.mjs from page/. Do not edit.
export interface Asset {
  readonly type: string;
  readonly tag: string;
  readonly text: string;
}

export const assets: Readonly<Record<string, Asset>> = {
${lines.join("")}};
`;
let old = "";
try {
  old = readFileSync(target, "utf8");
} catch {}
// Written only if it changed: otherwise a watching test run would start over.
if (old !== text) writeFileSync(target, text);
