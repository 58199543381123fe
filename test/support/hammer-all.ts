import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { type LockClient, LockTimeoutError, type MultiLease } from "../../src/index.ts";
import { seeded } from "../../tools/numbers.ts";

export interface HammerAllOptions {
  readonly names: readonly string[];
  readonly tasks: number;
  readonly ms: number;
  readonly seed: number;
  /**
   * The locks of each acquisition, in the order in which they are named: "all", "reversed", or some
   * at random.
   */
  readonly choice: "all" | "reversed" | "random";
  /** The beginning of `witness` keys. */
  readonly prefix: string;
}

export interface HammerAllReport {
  acquisitions: number;
  /** How often each lock was held. */
  visits: Record<string, number>;
  /** How often another holder was inside one of them: 0 for locks. */
  overlaps: number;
  /** How often a token was not larger than the previous one of its lock: 0 for locks. */
  staleTokens: number;
  /** Calls with a short time to wait that ended without the locks. */
  gaveUp: number;
  /** The longest time from the request to the lock, in ms. */
  longestWait: number;
}

/** Longer than any turn takes; a deadlock lasts forever. */
const PATIENCE = 20_000;

/**
 * Tasks that take overlapping sets of locks repeatedly, with a witness for each lock, and now and
 * then give up.
 */
export async function hammerAll(
  redis: Redis,
  locks: LockClient,
  { names, tasks, ms, seed, choice, prefix }: HammerAllOptions,
): Promise<HammerAllReport> {
  const random = seeded(seed);
  const report: HammerAllReport = {
    acquisitions: 0,
    visits: Object.fromEntries(names.map((name) => [name, 0])),
    overlaps: 0,
    staleTokens: 0,
    gaveUp: 0,
    longestWait: 0,
  };
  const choose = (): string[] => {
    if (choice === "all") return [...names];
    if (choice === "reversed") return [...names].reverse();
    const shuffled = names.map((name) => ({ name, at: random() })).sort((a, b) => a.at - b.at);
    return shuffled.slice(0, 1 + Math.floor(random() * 3)).map(({ name }) => name);
  };
  const end = performance.now() + ms;
  const task = async (): Promise<void> => {
    while (performance.now() < end) {
      const isImpatient = choice === "random" && random() < 0.2;
      const members = choose().map((name) => (random() < 0.3 ? locks.fairLock(name) : name));
      const asked = performance.now();
      const lease = await locks
        .multiLock(members)
        .lock({ wait: isImpatient ? Math.floor(random() * 20) : PATIENCE })
        .catch((error: unknown) => {
          if (error instanceof LockTimeoutError && isImpatient) return null;
          throw error;
        });
      if (!lease) {
        report.gaveUp++;
        continue;
      }
      report.longestWait = Math.max(report.longestWait, performance.now() - asked);
      report.acquisitions++;
      await visitAll(redis, lease, prefix, report);
      await lease.unlock();
    }
  };
  await Promise.all(Array.from({ length: tasks }, task));
  return report;
}

/**
 * Inside each lock: no other holder's mark, a larger token than the last one, and a count that only
 * one task writes.
 */
async function visitAll(
  redis: Redis,
  lease: MultiLease,
  prefix: string,
  report: HammerAllReport,
): Promise<void> {
  const places = lease.names.map((name) => ({
    name,
    mark: `${prefix}${name}:inside`,
    count: `${prefix}${name}:count`,
    token: `${prefix}${name}:token`,
  }));
  const marked = await Promise.all(places.map(({ mark }) => redis.set(mark, "1", "NX")));
  report.overlaps += marked.filter((answer) => answer === null).length;
  const counts = await Promise.all(places.map(({ count }) => redis.get(count)));
  await delay(counts.length % 2);
  await Promise.all(
    places.map(async ({ name, mark, count, token }, i) => {
      report.visits[name] = (report.visits[name] ?? 0) + 1;
      const own = lease.tokens.get(name) ?? 0;
      const last = await redis.getset(token, own);
      if (Number(last ?? 0) >= own) report.staleTokens++;
      await redis.set(count, Number(counts[i] ?? 0) + 1);
      await redis.del(mark);
    }),
  );
}
