import type { Flags } from "./args.ts";
import { COMMON, type Command } from "./command.ts";
import { wrapped } from "./table.ts";

const WIDTH = 100;

/** Examples first: most readers look for one. */
export function commandHelp({ name, summary, usage, examples, notes = [], flags }: Command): string {
  return [
    `holdfast ${name}: ${summary}`,
    "",
    ...examples.flatMap(([line, does]) => [`  $ ${line}`, `    ${does}`]),
    "",
    ...usage.map((line, i) => `${i === 0 ? "Usage:" : "      "} holdfast ${line}`),
    "",
    ...(Object.keys(flags).length > 0 ? [...flagLines(flags), ""] : []),
    commonHelp(),
    ...notes.flatMap((note) => ["", ...wrapped(note, WIDTH, "")]),
  ].join("\n");
}

/** The part that the help of every command has. */
export const commonHelp = (): string => ["Flags of every command:", ...flagLines(COMMON)].join("\n");

export function programHelp(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    "holdfast: locks on Redis from the command line",
    "",
    "  $ holdfast run backup -- ./backup.sh",
    '    runs the script while it holds the lock "backup"',
    "  $ holdfast run --every 1h report -- node report.js",
    "    once an hour, on whichever machine comes first",
    "  $ holdfast ls",
    "    which locks are held, by which process, and how many processes wait for them",
    "",
    "Usage: holdfast <command> [flags] …",
    "",
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    "",
    "holdfast help <command> has the examples and flags of each.",
  ].join("\n");
}

function flagLines(flags: Flags): string[] {
  const rows = Object.entries(flags).map(([name, { short, shows, help }]) => {
    const letter = short === null ? "    " : `-${short}, `;
    return [`  ${letter}--${name}${shows === null ? "" : ` ${shows}`}`, help] as const;
  });
  const width = Math.min(34, Math.max(...rows.map(([left]) => left.length)));
  return rows.flatMap(([left, help]) => {
    const lines = wrapped(help, WIDTH - width - 2, "");
    const isLong = left.length > width;
    const padded = lines.map((line, i) => `${(i === 0 && !isLong ? left : "").padEnd(width)}  ${line}`);
    return isLong ? [left, ...padded] : padded;
  });
}
