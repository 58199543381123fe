import { readFileSync } from "node:fs";
import { serverIs } from "./server-version.ts";

// The rights of a Redis user according to docs/operating.md: tests give exactly these.

const page = readFileSync(new URL("../../docs/operating.md", import.meta.url), "utf8");
const line = /^ACL SETUSER holdfast on .*$/m.exec(page)?.[0] ?? "";

/**
 * The rules in the code of the list item that begins like this, up to `end`. Its example `order:*`
 * is replaced by the tests' names.
 */
function item(begin: string, end?: string): string[] {
  const text = page.split("\n").find((one) => one.startsWith(`* ${begin}`));
  const until = end === undefined ? text?.length : text?.indexOf(end);
  if (text === undefined || until === undefined || until < 0)
    throw new Error(`docs/operating.md has no "* ${begin}" with "${end}"`);
  const spans = [...text.slice(0, until).matchAll(/`([^`]*)`/g)].map(([, code = ""]) => code);
  return spans
    .filter((code) => /^[~&+]/.test(code))
    .flatMap((code) => code.replace("~order:*", TESTS).split(" "));
}

/** The keys that \`freshName()\` gives. */
const TESTS = "~test:*";
const nothing = ["resetkeys", "resetchannels", "-@all"];
/** ioredis reports its name with it. Redis 7.0 does not know the right, and refuses to give it. */
const introduction = serverIs("7.0") && !serverIs("7.2") ? [] : item("ioredis sends");
const handoff = [...line.split(" ").slice(4), ...introduction]; // without "ACL SETUSER holdfast on"
const redisson = [...handoff, TESTS, ...item("`redissonLock`")];

const list = [...nothing, ...introduction, ...item("`list`", "With `kind")];

const security = readFileSync(new URL("../../docs/security.md", import.meta.url), "utf8");
/**
 * The rights that docs/security.md takes from a user of another application that had all rights.
 */
export const others = [
  ...(/^ACL SETUSER other (.*)$/m.exec(security)?.[1] ?? "").split(" "),
  ...(/`(resetkeys ~other[^`]*)`/.exec(security)?.[1] ?? "").split(" "),
];

/** The commands of the first line. */
export const commands = line.split(" ").flatMap((rule) => (rule.startsWith("+") ? [rule.slice(1)] : []));

/** All rules of a user except "on" and a password, by the features that it uses. */
export const rights = {
  handoff,
  redisson,
  redissonFenced: [...redisson, ...item("`redissonFencedLock`")],
  counted: [...handoff, ...item("`readWriteLock` and `semaphore`")],
  spin: [...nothing, ...introduction, ...item("`spinLock`")],
  election: [...handoff, ...item("`election`")],
  /** For a user that only observes elections: all that the item names. */
  observer: [...nothing, ...introduction, ...item("`election`")],
  database: item("With a `db`"),
  once: [...nothing, ...introduction, ...item("`runOnce`")],
  list,
  /** For a user that also lists Redisson's locks. */
  listAll: [...nothing, ...introduction, ...item("`list`")],
  page: [...list, ...item("[The page]")],
  /** For a connection that only `observe()` uses. */
  observed: [...nothing, ...introduction, ...item("`observe`")],
  /** Commands that the program sends in addition to those of the subcommand. */
  commandLine: item("[The command line]"),
  readWrite: [...handoff, ...item("`readWriteLock` and `semaphore`")],
  quorum: [...nothing, ...introduction, ...item("For a quorum")],
  fencedSet: [...nothing, ...introduction, TESTS, ...item("`fencedSet`")],
  optimistic: [...handoff, TESTS, ...item("`optimistic`")],
  cluster: item("In Cluster"),
  replicas: item("With `replicas`"),
};
