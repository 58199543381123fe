// Embeds lua/**/*.lua into src/redis/lua.generated.ts: nothing is read at run time, so bundlers cannot break it.
// `-- @include path` stands for that file, seen from the same folder; its text is embedded once, however many scripts
// include it. A name of lua/constants.lua stands for its number. Comments are cut: Redis need not read them. A line of code
// stays a line: Redis names its number in errors.
// Every script must carry the header that people read: KEYS, ARGV, RETURNS, INVARIANTS.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path/posix";

const root = new URL("../../lua/", import.meta.url);
const target = new URL("../../src/redis/lua.generated.ts", import.meta.url);

const constants = new Map(
  [...readFileSync(new URL("constants.lua", root), "utf8").matchAll(/^([A-Z_]+) = (\d+)/gm)].map(
    ([, name, number]) => [name, number],
  ),
);

const camel = (text) => text.replace(/\W+(\w)/g, (_, letter) => letter.toUpperCase());

const strip = (source) =>
  source
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("--"))
    .join("\n")
    .replace(/\b[A-Z_]+\b/g, (word) => constants.get(word) ?? word);

const HEADER = ["KEYS", "ARGV", "RETURNS", "INVARIANTS"];

/** Parts of scripts are no scripts. */
const isPart = (path) => readFileSync(new URL(path, root), "utf8").startsWith("-- Included");

/** Every included file by its path: its text, and the constant that has it. In the order of the constants. */
const parts = new Map();

/** The text of a file below lua/, and a TypeScript expression for it. */
function compile(path) {
  const source = readFileSync(new URL(path, root), "utf8");
  // A split by a group: texts and paths in turn.
  const pieces = source.split(/^[ \t]*-- @include ([\w./-]+)$/m).map((piece, i) => {
    if (i % 2 === 1) return include(join(path, "..", `${piece}.lua`));
    const text = strip(piece);
    return { text, expression: JSON.stringify(text) };
  });
  const filled = pieces.filter(({ text }) => text !== "");
  return {
    text: filled.map(({ text }) => text).join("\n"),
    expression: filled.map(({ expression }) => expression).join(' + "\\n" + '),
  };
}

function include(path) {
  const known = parts.get(path);
  if (known) return known;
  const { text, expression: value } = compile(path);
  const part = { text, value, expression: camel(path.slice(0, -".lua".length)) };
  parts.set(path, part);
  return part;
}

function embed(folder, file) {
  const path = `${folder}/${file}`;
  const source = readFileSync(new URL(path, root), "utf8");
  for (const word of HEADER)
    if (!source.includes(`\n-- ${word} `)) throw new Error(`lua/${path} lacks "-- ${word}" in its header`);
  const { text, expression } = compile(path);
  const sha = createHash("sha1").update(text).digest("hex");
  const name = path.slice(0, -".lua".length);
  const key = camel(file.slice(0, -".lua".length));
  return { key, line: `  ${key}: { name: ${JSON.stringify(name)}, sha: "${sha}", lua: ${expression} },\n` };
}

const protocols = readdirSync(root, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
  .sort()
  .map((folder) => {
    const scripts = readdirSync(new URL(`${folder}/`, root))
      .filter((file) => file.endsWith(".lua") && !isPart(`${folder}/${file}`))
      .sort()
      .map((file) => embed(folder, file));
    const keys = scripts.map(({ key }) => `"${key}"`).join(" | ");
    const lines = scripts.map(({ line }) => line).join("");
    return `export const ${folder}Lua: Readonly<Record<${keys}, Script>> = {\n${lines}};\n`;
  });

const text = `// Made by tools/build/embed-lua.mjs from lua/. Do not edit.
import type { Script } from "./script.ts";

/** What the numbers in replies mean, and the times that scripts count with. */
export const codes = {
${[...constants].map(([name, number]) => `  ${name}: ${number},\n`).join("")}} as const;

${[...parts.values()].map(({ expression, value }) => `const ${expression} = ${value};\n`).join("")}
${protocols.join("\n")}`;
let old = "";
try {
  old = readFileSync(target, "utf8");
} catch {}
// Written only when it changed: a watching test run would start over for nothing.
if (old !== text) writeFileSync(target, text);
