import { readdirSync } from "node:fs";
import { join } from "node:path";
import { headings, readText, tableRows } from "./markdown.ts";

/** Where src/defaults.ts keeps the default of an option that has one there. */
const DEFAULTS: Record<string, string> = {
  leaseTime: "LEASE_TIME",
  replyTimeout: "REPLY_TIMEOUT",
  grantWindow: "GRANT_WINDOW",
  localPasses: "LOCAL_PASSES",
  grace: "GRACE",
  retries: "TRANSACTION_RETRIES",
  nodeTimeout: "NODE_TIMEOUT",
  retryDelay: "RETRY_DELAY",
  longestLease: "LONGEST_LEASE",
};

/** Where the options stand that the README has a table of. */
const OPTIONS = [
  { file: "src/options.ts", types: ["LockOptions", "LockClientOptions", "CloseOptions"] },
  { file: "src/redlock/options.ts", types: ["QuorumClientOptions"] },
  { file: "src/optimistic/options.ts", types: ["OptimisticOptions"] },
];

const COMMANDS = ["npm ci && npm run demo", "npm ci && npm test"];

/** Every error class, error code and loss reason of src/errors.ts, and every warning code, is told in docs/errors.md. */
export function checkErrors(root: string): string[] {
  const source = readText(root, "src/errors.ts");
  const page = readText(root, "docs/errors.md");
  const words = new Set(headings(page).flatMap((heading) => heading.split(/[^\w]+/)));
  const classes = matches(source, /^export class (\w+)/gm);
  const codes = stringsOfType(source, "LockErrorCode");
  const warnings = sources(root).flatMap((path) =>
    matches(readText(root, path), /code: "([A-Z_]+)"/g).filter((code) => !codes.includes(code)),
  );
  const rows = new Set(tableRows(page).map(([first]) => first));
  return [
    ...unless(classes.length > 0, "src/errors.ts: found no exported class"),
    ...unless(codes.length > 0, "src/errors.ts: found no LockErrorCode"),
    ...[...classes, ...codes, ...warnings].flatMap((word) =>
      unless(words.has(word), `docs/errors.md: no heading names ${word}`),
    ),
    ...stringsOfType(source, "LossReason").flatMap((reason) =>
      unless(
        rows.has(`\`${reason}\``),
        `docs/errors.md: no row of a table tells of the loss reason ${reason}`,
      ),
    ),
  ];
}

/** The README's tables name every option and event, and no default other than that of src/defaults.ts. */
export function checkOptions(root: string): string[] {
  const defaults = readText(root, "src/defaults.ts");
  const rows = tableRows(readText(root, "README.md"));
  const rowOf = (word: string): string[] | undefined => rows.find(([first]) => first === `\`${word}\``);
  const names = OPTIONS.flatMap(({ file, types }) => {
    const source = readText(root, file);
    return types.flatMap((name) => members(source, name));
  });
  const events = members(readText(root, "src/events.ts"), "LockEvents");
  return [
    ...unless(
      names.length > 0 && events.length > 0,
      "src/options.ts …, src/events.ts: found no option or no event",
    ),
    ...names.flatMap((name) => unless(rowOf(name) !== undefined, `README.md: no row for the option ${name}`)),
    ...events.flatMap((name) => unless(rowOf(name) !== undefined, `README.md: no row for the event ${name}`)),
    ...Object.entries(DEFAULTS).flatMap(([name, constant]) => {
      const value = new RegExp(`^export const ${constant} = ([\\d_]+);`, "m").exec(defaults)?.[1];
      if (value === undefined)
        return [`src/defaults.ts: found no number ${constant}, the default of ${name}`];
      const wanted = number(value);
      const told = rowOf(name)?.[1] ?? "nothing";
      return unless(
        number(told) === wanted,
        `README.md: the default of ${name} is ${wanted}, the table says ${told}`,
      );
    }),
  ];
}

/** Every script is named by its path in docs/protocol.md, and no other is. */
export function checkScripts(root: string): string[] {
  const page = readText(root, "docs/protocol.md");
  const scripts = readdirSync(join(root, "lua"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".lua"))
    .map((file) => `lua/${file}`);
  return [
    ...unless(scripts.length > 0, "lua/: found no script"),
    ...scripts.flatMap((path) => unless(page.includes(path), `docs/protocol.md: does not mention ${path}`)),
    ...matches(page, /(lua\/[\w/-]+\.lua)/g).flatMap((path) =>
      unless(scripts.includes(path), `docs/protocol.md: mentions ${path}, which is not there`),
    ),
  ];
}

/** The README says how to see the demo and the tests on a fresh machine. */
export function checkReadmeCommands(root: string): string[] {
  const page = readText(root, "README.md");
  return COMMANDS.flatMap((command) =>
    unless(page.includes(command), `README.md: lacks the command ${command}`),
  );
}

const unless = (isFine: boolean, problem: string): string[] => (isFine ? [] : [problem]);

const number = (text: string): number => Number(text.replace(/[\s_]/g, ""));

const matches = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, found = ""]) => found);

const sources = (root: string): string[] =>
  readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => `src/${file}`);

/** The strings of `export type Name = "a" | "b";`. */
function stringsOfType(source: string, name: string): string[] {
  const body = new RegExp(`^export type ${name} =([^;]*);`, "m").exec(source)?.[1] ?? "";
  return matches(body, /"(\w+)"/g);
}

/** The members of `export interface Name { … }` that stand at its first level. */
function members(source: string, name: string): string[] {
  const body = new RegExp(`^export interface ${name}\\b[^{]*\\{\\n(.*?)^\\}`, "ms").exec(source)?.[1] ?? "";
  return matches(body, /^ {2}(\w+)\??:/gm);
}
