import { readFileSync } from "node:fs";
import { renamedCommand } from "../../inside.ts";
import { quoteWhole } from "../../util/quote.ts";
import { unknownOption } from "./args.ts";
import { didYouMean } from "./closest.ts";
import { COMMON, type Command } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { EXIT, ExitError, failureOf, judge, UsageError } from "./exit-codes.ts";
import { commandHelp, programHelp } from "./help.ts";
import { Output } from "./output.ts";

const WINDOWS =
  "Windows is not supported, because it has no process groups and signals by which a command could be ended in time.";

/** Runs one command line. Resolves with the exit code. */
export async function main(argv: readonly string[], platform: string = process.platform): Promise<number> {
  try {
    if (platform === "win32") throw new ExitError(EXIT.unavailable, WINDOWS);
    return await dispatch(argv);
  } catch (error) {
    const { code, message } = judge(error);
    const end = argv.indexOf("--");
    const output = new Output({
      json: argv.slice(0, end < 0 ? argv.length : end).includes("--json") || undefined,
    });
    output.fail(message);
    output.reportJson({ outcome: failureOf(code), code, message });
    return code;
  }
}

async function dispatch([name, ...argv]: readonly string[]): Promise<number> {
  if (name === undefined) {
    process.stderr.write(`${programHelp(COMMANDS)}\n`);
    return EXIT.usage;
  }
  if (name === "help" || name === "--help" || name === "-h") {
    const [about] = argv;
    print(about === undefined ? programHelp(COMMANDS) : commandHelp(find(about)));
    return EXIT.ok;
  }
  if (name === "--version" || name === "-V") {
    print(version());
    return EXIT.ok;
  }
  return find(name).call(argv, (command) => print(commandHelp(command)));
}

function find(name: string): Command {
  const found = COMMANDS.find((command) => command.name === name);
  if (found) return found;
  if (name.startsWith("-")) throw new UsageError(misplaced(name));
  const known = [...COMMANDS.map((command) => command.name), "help"];
  const renamed = renamedCommand(name);
  const hint = renamed === null ? didYouMean(name, known, "holdfast help") : `: ${renamed}`;
  throw new UsageError(`There is no command ${quoteWhole(name)}${hint}`);
}

/** An option comes where the command should be. */
function misplaced(typed: string): string {
  const [option = ""] = typed.split("=");
  const known = [COMMON, ...COMMANDS.map(({ flags }) => flags)].flatMap((flags) =>
    Object.entries(flags).flatMap(([name, { short }]) => [`--${name}`, `-${short}`]),
  );
  return known.includes(option)
    ? `Option ${quoteWhole(option)} comes after the command: holdfast <command> ${option}.`
    : unknownOption(option, ["help", "version"], "holdfast help");
}

const print = (text: string) => process.stdout.write(`${text}\n`);

/** The version of the package that contains this file. */
function version(): string {
  // package.json is next to dist/ in a build; src/tools/cli/ is two folders deeper.
  for (const path of ["../package.json", "../../../package.json"]) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
      if (name === "holdfast") return version;
    } catch {
      // Try the other one.
    }
  }
  return "unknown";
}
