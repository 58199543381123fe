import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Documented, declaredNames, freeNames, splitImports } from "./doc-comments.ts";

/** A name that examples use without a word of where it comes from. */
interface StandIn {
  readonly code: string;
  /** What ends it. */
  readonly end?: string;
}

/** Left open leases are reported after so many ms, and fail their example. */
const LOCKS_END = "await locks.close({ grace: 500 });";

// Where a declaration names several, each of them has it.
const CANDIDATE = { code: "const candidate = new Candidate(); const { stopping, schedule } = candidate;" };
const OBSERVER = {
  code: 'await using leading = await election.campaign({ value: "10.0.0.7:8080" }); const { connect, disconnect } = candidate;',
};

/** Beside the functions of application.ts. Each is made anew for each example that uses it. */
const STAND_INS: Readonly<Record<string, StandIn>> = {
  redis: { code: "const redis = new Redis();" },
  redisA: { code: "const redisA = new Redis(0);" },
  redisB: { code: "const redisB = new Redis(1);" },
  redisC: { code: "const redisC = new Redis(2);" },
  locks: { code: "const locks = createLockClient(redis);", end: LOCKS_END },
  lock: { code: 'const lock = locks.lock("order:42");' },
  lease: { code: 'await using lease = await locks.lock("order:42").lock();' },
  slots: { code: 'const slots = locks.semaphore("smtp", { permits: 10 });' },
  election: { code: 'const election = locks.election("scheduler");' },
  term: { code: "await using term = await election.campaign();" },
  app: { code: "const app = new App();", end: "await app.close();" },
  candidate: CANDIDATE,
  stopping: CANDIDATE,
  schedule: CANDIDATE,
  connect: OBSERVER,
  disconnect: OBSERVER,
  // A body that loses its lock.
  sell: {
    code: "const sell = () => lock.withLock(async () => { await lock.forceUnlock(); });",
  },
  payments: {
    code: 'const payments = { pay: (id: string) => locks.lock("order:" + id).withLock(({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))) };',
  },
  Service: { code: "class Service { constructor(readonly locks: LockClient) {} }" },
};

/** What stands for other things in the examples of an entry point. */
const OF_ENTRY: Readonly<Record<string, Readonly<Record<string, StandIn>>>> = {
  "holdfast/quorum": {
    locks: { code: "const locks = createQuorumClient([redisA, redisB, redisC]);", end: LOCKS_END },
  },
  "holdfast/testing": { locks: { code: "const locks = createTestLocks();", end: "await locks.close();" } },
};

/** What is imported in place of what an example names. */
const REPLACED: Readonly<Record<string, string>> = {
  ioredis: "./servers.js",
  "holdfast/quorum": "./servers.js",
};

const here = (file: string): string => readFileSync(fileURLToPath(new URL(file, import.meta.url)), "utf8");
export const APPLICATION = here("application.ts");
export const SERVERS = here("servers.ts");

const applicationNames = new Set(
  [...APPLICATION.matchAll(/^export (?:async )?(?:function|const|class) (\w+)/gm)].map(
    ([, name = ""]) => name,
  ),
);

export interface Example {
  /** Such as `Lock.withLock`; ` (2)` is the second one of that. */
  readonly name: string;
  readonly entry: string;
  readonly code: string;
}

export const examplesOf = (docs: readonly Documented[]): Example[] =>
  docs.flatMap(({ name, entry, examples }) =>
    examples.map((code, i) => ({ name: i === 0 ? name : `${name} (${i + 1})`, entry, code })),
  );

/** A module whose default export runs the example, and where in it the example begins. */
export interface Program {
  readonly text: string;
  /** Lines before the example's own first one. */
  readonly before: number;
}

/** `docs`: of all entry points; what these export needs no import. */
export function programOf({ entry, code }: Example, docs: readonly Documented[]): Program {
  const { imports, rest } = splitImports(code);
  const chosen: StandIn[] = [];
  const imported = new Map<string, string>();

  /** What a piece of code needs comes before it. */
  const provide = (names: Iterable<string>): void => {
    for (const name of names) {
      const standIn = OF_ENTRY[entry]?.[name] ?? STAND_INS[name];
      const from = standIn ? undefined : moduleOf(name, entry, docs);
      if (from) imported.set(name, from);
      if (!standIn || chosen.includes(standIn)) continue;
      provide(freeNames(standIn.code));
      if (!chosen.includes(standIn)) chosen.push(standIn);
    }
  };
  provide(freeNames(code));

  const replaced = (from: string): string => JSON.stringify(REPLACED[from] ?? from);
  const head = [
    imports.replaceAll(/from "([^"]+)"/g, (_, from: string) => `from ${replaced(from)}`),
    ...[...imported].map(([name, from]) => `import { ${name} } from ${replaced(from)};`),
    "export default async function example(): Promise<unknown> {",
    ...chosen.flatMap(({ code, end }) => (end ? [code, "try {"] : [code])),
    "{",
  ];
  const tail = [
    ...declaredNames(rest).flatMap((name) => STAND_INS[name]?.end ?? []),
    "}",
    ...chosen.flatMap(({ end }) => (end ? [`} finally { ${end} }`] : [])).reverse(),
    "return undefined;",
    "}",
  ];
  const lines = (text: string): number => (text === "" ? 0 : text.split("\n").length);
  // What comes after an import begins with the end of its line.
  const before = lines(head.join("\n")) - lines(imports) + (imports === "" ? 0 : 1);
  return { text: [...head, rest, ...tail, ""].join("\n"), before };
}

/** The entry point of the example first: several may export one name. */
function moduleOf(name: string, entry: string, docs: readonly Documented[]): string | undefined {
  if (applicationNames.has(name)) return "./application.js";
  if (name === "Redis") return "ioredis";
  const found = docs.filter((one) => one.name === name).map((one) => one.entry);
  return found.includes(entry) ? entry : found[0];
}
