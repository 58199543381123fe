import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { figure, prove } from "./support.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("portable.js", import.meta.url));

// Bun and Deno are no part of this package's dependencies, as they are programs of 100 MB: those on
// the PATH are tried.
for (const [command, ...args] of [[process.execPath], ["bun"], ["deno", "run", "--allow-all"]]) {
  if (command === undefined) continue;
  const version = await run(command, ["--version"]).then(
    ({ stdout }) => stdout.split("\n", 1)[0] ?? "",
    () => null,
  );
  const name = command === process.execPath ? "node" : command;
  if (version === null) figure(name, "not on the PATH, skipped");
  else {
    const { stdout } = await run(command, [...args, program], { timeout: 60_000 });
    prove(stdout.includes("all is well"), `it runs on ${name}`);
    figure(name, `${version.replace(/^(deno|v)\s*/, "")}, fine`);
  }
}
