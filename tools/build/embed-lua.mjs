// Embeds lua/**/*.lua into modules of src/: nothing is read at run time, so bundlers cannot break
// it. An application must not carry scripts that it does not import. So scripts that only one entry
// point sends have their own module, and so have the numbers of lua/constants.lua.
// `-- @include path` is replaced by that file, relative to the same folder. Its text occurs once
// per module, however many scripts include it. No module imports parts of another one, because
// Rolldown would then copy every part into every script. A name of lua/constants.lua is replaced by
// its number. Comments are removed: Redis need not read them. A line of code remains one line,
// because Redis reports line numbers in errors.
// Every script must have the header that people read: KEYS, ARGV, RETURNS, INVARIANTS. Its second
// and third part are embedded, too: from them TypeScript has the names of arguments and replies.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path/posix";
import { compileScripts, includeMark } from "./compile-lua.mjs";
import { formOf } from "./script-form.mjs";

const root = new URL("../../lua/", import.meta.url);

/**
 * The modules below src, each with the folders of lua/ whose scripts it has. All other folders
 * belong to the lock's module.
 */
const LOCK = "redis/lua.generated.ts";
const MODULES = {
  [LOCK]: [],
  "redis/client-lua.generated.ts": ["check", "connection"],
  "quorum/lua.generated.ts": ["quorum"],
  "wires/redisson-lua.generated.ts": ["redisson"],
  "wires/spin-lua.generated.ts": ["spin"],
  "fencing/lua.generated.ts": ["fencing"],
  "tools/ui/lua.generated.ts": ["ui"],
};
const CODES = "redis/codes.generated.ts";

const constants = new Map(
  [...readFileSync(new URL("constants.lua", root), "utf8").matchAll(/^([A-Z_]+) = (\d+)/gm)].map(
    ([, name, number]) => [name, number],
  ),
);

/** Those that begin replies: the first ones, from 1 without a gap. */
const gap = [...constants].findIndex(([, number], i) => Number(number) !== i + 1);
const replyCodes = [...constants.keys()].slice(0, gap);

const camel = (text) => text.replace(/\W+(\w)/g, (_, letter) => letter.toUpperCase());

const strip = (source) =>
  source
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("--"))
    .join("\n")
    .replace(/\b[A-Z_]+\b/g, (word) => constants.get(word) ?? word);

const HEADER = ["KEYS", "ARGV", "RETURNS", "INVARIANTS"];

/** Of a file of lua/. */
const textOf = (path) => readFileSync(new URL(path, root), "utf8");

/** Parts of scripts are not scripts. */
const isPart = (path) => textOf(path).startsWith("-- Included");

/**
 * Every included file by its path: its text, its constant, and the files that it includes. In the
 * order of the constants.
 */
const parts = new Map();

/**
 * The text of a file below lua/, a TypeScript expression for it, and the paths of the parts that it
 * includes.
 */
function compile(path) {
  const source = textOf(path);
  // A split with a group: texts and paths alternate.
  const pieces = source.split(/^[ \t]*-- @include ([\w./-]+)$/m).map((piece, i) => {
    if (i % 2 === 1) return include(join(path, "..", `${piece}.lua`));
    const text = strip(piece);
    return { text, marked: text, expression: JSON.stringify(text) };
  });
  const filled = pieces.filter(({ text }) => text !== "");
  return {
    text: filled.map(({ text }) => text).join("\n"),
    marked: filled.map(({ marked }) => marked).join("\n"),
    expression: filled.map(({ expression }) => expression).join(' + "\\n" + '),
    includes: filled.flatMap((piece) => (piece.path === undefined ? [] : [piece.path])),
  };
}

function include(path) {
  const known = parts.get(path);
  if (known) return known;
  const { text, marked: body, expression: value, includes } = compile(path);
  const expression = camel(path.slice(0, -".lua".length));
  const part = { path, text, body, value, includes, expression, marked: includeMark(path) };
  parts.set(path, part);
  return part;
}

/** The paths of these parts, and of the parts that they include. */
const reached = (paths) => [
  ...new Set(paths.flatMap((path) => [...reached(parts.get(path).includes), path])),
];

function embed(folder, file, forms) {
  const path = `${folder}/${file}`;
  const source = textOf(path);
  for (const word of HEADER)
    if (!source.includes(`\n-- ${word} `)) throw new Error(`lua/${path} lacks "-- ${word}" in its header`);
  const { text, marked, expression, includes } = compile(path);
  const sha = createHash("sha1").update(text).digest("hex");
  const name = path.slice(0, -".lua".length);
  const key = camel(file.slice(0, -".lua".length));
  const form = formOf(path, textOf);
  const has = form === null ? "" : `, form: ${nameOf(form, forms, camel(`${folder} ${key} form`))}`;
  const line = `  ${key}: { name: ${JSON.stringify(name)}, sha: "${sha}", lua: ${expression}${has} },\n`;
  return { key, line, includes, compiled: { name, sha, text: marked } };
}

/** The name of the constant of a form: that of the first one of its module that has the same text. */
function nameOf(form, forms, name) {
  const text = JSON.stringify(form);
  const known = forms.get(text) ?? name;
  forms.set(text, known);
  return known;
}

/** The constants of a module's forms, and of the replies that several of them have. */
function formsText(forms) {
  const rows = new Map();
  for (const [text, form] of forms)
    for (const [codes, row] of Object.entries(JSON.parse(text).replies)) {
      const known = rows.get(JSON.stringify(row));
      if (known) known.isShared = true;
      else
        rows.set(JSON.stringify(row), {
          name: camel(`${form} ${codes || "row"}`),
          isShared: false,
        });
    }
  const shared = [...rows].filter(([text, { isShared }]) => isShared && text !== "{}");
  const lines = [...shared.map(([text, { name }]) => [text, name]), ...forms].map(([text, name]) => {
    let value = text;
    // A row never contains another one that is shared: lists are parts of one row.
    for (const [row, { name: as }] of shared) if (row !== text) value = value.replaceAll(`:${row}`, `:${as}`);
    return `const ${name} = ${value.replace(/"(\w+)":/g, "$1:")} as const;\n`;
  });
  return lines.join("");
}

/** The constant with the scripts of a folder. */
function protocol(folder, forms) {
  const scripts = readdirSync(new URL(`${folder}/`, root))
    .filter((file) => file.endsWith(".lua") && !isPart(`${folder}/${file}`))
    .sort()
    .map((file) => embed(folder, file, forms));
  const lines = scripts.map(({ line }) => line).join("");
  return {
    text: `export const ${folder}Lua = {\n${lines}} satisfies Readonly<Record<string, Script>>;\n`,
    includes: scripts.flatMap((script) => script.includes),
    compiled: scripts.map((script) => script.compiled),
  };
}

const owned = Object.values(MODULES).flat();
const folders = readdirSync(root, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
  .sort();
MODULES[LOCK] = folders.filter((folder) => !owned.includes(folder));

const scripts = [];
for (const [path, names] of Object.entries(MODULES)) {
  const forms = new Map();
  const protocols = names.map((folder) => protocol(folder, forms));
  scripts.push(...protocols.flatMap(({ compiled }) => compiled));
  const needed = reached(protocols.flatMap(({ includes }) => includes)).map((part) => parts.get(part));
  const script = relative(dirname(path), "redis/script.ts");
  const blocks = [
    `import type { Script } from "${script.startsWith(".") ? script : `./${script}`}";\n`,
    needed.map(({ expression, value }) => `const ${expression} = ${value};\n`).join(""),
    formsText(forms),
    ...protocols.map(({ text }) => text),
  ];
  write(path, blocks.filter((block) => block !== "").join("\n"));
}
write(
  CODES,
  `/** What the numbers in replies mean, and the times that scripts count with. */
export const codes = {
${[...constants].map(([name, number]) => `  ${name}: ${number},\n`).join("")}} as const;

/** The codes that a reply or a row may begin with, as words; by their numbers. */
export const words: readonly string[] = ["", ${replyCodes.map((name) => JSON.stringify(name.toLowerCase())).join(", ")}];
`,
);
write(
  "tools/testing/scripts.generated.ts",
  `// @ts-nocheck: the compiler checks what it compiles.
import * as L from "./lua-runtime.ts";

${compileScripts(scripts, new Map([...parts.values()].map(({ path, body }) => [path, body])))}`,
);

function write(path, body) {
  const target = new URL(`../../src/${path}`, import.meta.url);
  const text = `// Made by tools/build/embed-lua.mjs from lua/. Do not edit.\n${body}`;
  let old = "";
  try {
    old = readFileSync(target, "utf8");
  } catch {}
  // Written only if it changed: otherwise a watching test run would start over.
  if (old !== text) writeFileSync(target, text);
}
