import { markdownFiles, readText, tables } from "./markdown.ts";
import { members } from "./sources.ts";

/** Where src/defaults.ts has the default of an option, if it has one there. */
const DEFAULTS: Record<string, string> = {
  leaseTime: "LEASE_TIME",
  replyTimeout: "REPLY_TIMEOUT",
  grantWindow: "GRANT_WINDOW",
  localHandoffs: "LOCAL_HANDOFFS",
  replicaTimeout: "REPLICA_TIMEOUT",
  grace: "GRACE",
  retries: "TRANSACTION_RETRIES",
  remember: "FENCE_MEMORY",
  nodeTimeout: "NODE_TIMEOUT",
  retryDelay: "RETRY_DELAY",
  longestLease: "LONGEST_LEASE",
};

/** Where the options are declared, and the page with their table. */
const OPTIONS = [
  {
    file: "src/api/options.ts",
    types: [
      "LockOptions",
      "BodyOptions",
      "LockClientOptions",
      "LingerOptions",
      "ReadWriteOptions",
      "CloseOptions",
    ],
    page: "docs/options.md",
  },
  {
    file: "src/api/election.ts",
    types: ["ElectionOptions", "LeadOptions", "CampaignOptions", "ObserveOptions"],
    page: "docs/options.md",
  },
  { file: "src/api/once.ts", types: ["OnceOptions"], page: "docs/options.md" },
  { file: "src/api/remember.ts", types: ["RememberOptions"], page: "docs/remember.md" },
  { file: "src/api/semaphore.ts", types: ["SemaphoreOptions"], page: "docs/options.md" },
  { file: "src/api/election.ts", types: ["ElectionOptions", "LeadOptions"], page: "docs/options.md" },
  { file: "src/spin.ts", types: ["SpinLockOptions"], page: "docs/options.md" },
  { file: "src/quorum/options.ts", types: ["QuorumClientOptions"], page: "docs/quorum.md" },
  { file: "src/optimistic/options.ts", types: ["OptimisticOptions"], page: "docs/optimistic.md" },
  { file: "src/fencing/options.ts", types: ["FenceOptions"], page: "docs/fencing.md" },
  { file: "src/fencing/fenced-set.ts", types: ["FencedSetOptions"], page: "docs/fencing.md" },
  { file: "src/fencing/fenced-eval.ts", types: ["FencedEvalOptions"], page: "docs/fencing.md" },
];

/**
 * Every option and event has a row in the table of its page. No table of options, on any page,
 * names an unknown option, or a default that differs from src/defaults.ts.
 */
export function checkOptions(root: string): string[] {
  const declared = OPTIONS.flatMap(({ file, types, page }) => {
    const source = readText(root, file);
    return types.flatMap((type) => members(source, type).map((name) => ({ name, page })));
  });
  const events = members(readText(root, "src/api/events.ts"), "LockEvents");
  if (declared.length === 0 || events.length === 0)
    return ["src/api/options.ts …, src/api/events.ts: found no option or no event"];
  const known = new Set(declared.map(({ name }) => name));
  const told = markdownFiles(root).flatMap((page) =>
    rowsOf(root, page, "option").map((row) => ({ ...row, page })),
  );
  const heard = rowsOf(root, "docs/events.md", "event").map(({ name }) => name);
  return [
    ...declared
      .filter(({ name, page }) => !told.some((row) => row.name === name && row.page === page))
      .map(({ name, page }) => `${page}: no row for the option ${name}`),
    ...told
      .filter(({ name }) => !known.has(name))
      .map(({ name, page }) => `${page}: a row for the option ${name}, which is not there`),
    ...told.flatMap(({ name, cells, page }) => wrongDefault(root, name, cells[1] ?? "", page)),
    ...events
      .filter((name) => !heard.includes(name))
      .map((name) => `docs/events.md: no row for the event ${name}`),
    ...heard
      .filter((name) => !events.includes(name))
      .map((name) => `docs/events.md: a row for the event ${name}, which is not there`),
  ];
}

/**
 * The rows of all tables of a page with this heading; a row that names several things counts for
 * each.
 */
function rowsOf(root: string, page: string, head: string): { name: string; cells: readonly string[] }[] {
  return tables(readText(root, page))
    .filter(({ heads }) => heads[0] === head)
    .flatMap(({ rows }) =>
      rows.flatMap((cells) =>
        [...(cells[0] ?? "").matchAll(/`(\w+)`/g)].map(([, name = ""]) => ({ name, cells })),
      ),
    );
}

/**
 * A default that begins with a number must equal the one in src/defaults.ts; "as for one server" is
 * fine.
 */
function wrongDefault(root: string, name: string, text: string, page: string): string[] {
  const constant = DEFAULTS[name];
  const told = /^\d[\d ]*/.exec(text)?.[0];
  if (constant === undefined || told === undefined) return [];
  const value = new RegExp(`^export const ${constant} = ([\\d_ *]+);`, "m").exec(
    readText(root, "src/defaults.ts"),
  )?.[1];
  if (value === undefined) return [`src/defaults.ts: found no number ${constant}, the default of ${name}`];
  const wanted = value
    .replaceAll("_", "")
    .split("*")
    .reduce((product, factor) => product * Number(factor), 1);
  return Number(told.replaceAll(" ", "")) === wanted
    ? []
    : [`${page}: the default of ${name} is ${wanted}, the table says ${told.trim()}`];
}
