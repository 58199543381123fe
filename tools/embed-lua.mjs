// Embeds lua/**/*.lua into src/scripts/lua.generated.ts: nothing is read at run time, so bundlers cannot break it.
// `-- @include path` stands for that file, seen from the same folder. Comments are cut: Redis need not read them.
// Every script must carry the header that people read: KEYS, ARGV, RETURNS, INVARIANTS.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const root = new URL("../lua/", import.meta.url);
const target = new URL("../src/scripts/lua.generated.ts", import.meta.url);

/** Parts of scripts, not scripts. */
const INCLUDED = ["shared.lua", "rights.lua", "several.lua"];

const strip = (source) =>
  source
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("--"))
    .join("\n");

function embed(folder, file) {
  const source = readFileSync(new URL(`${folder}/${file}`, root), "utf8");
  for (const word of ["KEYS", "ARGV", "RETURNS", "INVARIANTS"]) {
    if (!source.includes(`\n-- ${word} `))
      throw new Error(`lua/${folder}/${file} lacks "-- ${word}" in its header`);
  }
  const include = (_, name) => readFileSync(new URL(`${folder}/${name}.lua`, root), "utf8");
  const lua = strip(source.replace(/^-- @include ([\w./]+)$/gm, include));
  return { sha: createHash("sha1").update(lua).digest("hex"), lua };
}

const camel = (text) => text.replace(/-(\w)/g, (_, letter) => letter.toUpperCase());
const protocols = readdirSync(root, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
  .sort()
  .map((folder) => {
    const scripts = readdirSync(new URL(`${folder}/`, root))
      .filter((file) => file.endsWith(".lua") && !INCLUDED.includes(file))
      .sort()
      .map((file) => {
        const { sha, lua } = embed(folder, file);
        const name = `${folder}/${file.slice(0, -4)}`;
        return `  ${camel(file.slice(0, -4))}: { name: ${JSON.stringify(name)}, sha: "${sha}", lua: ${JSON.stringify(lua)} },`;
      });
    return `export const ${folder}Lua = {\n${scripts.join("\n")}\n} as const;\n`;
  });

const text = `// Made by tools/embed-lua.mjs from lua/. Do not edit.\n\n${protocols.join("\n")}`;
let old = "";
try {
  old = readFileSync(target, "utf8");
} catch {}
// Written only when it changed: a watching test run would start over for nothing.
if (old !== text) writeFileSync(target, text);
