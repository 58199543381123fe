import type { Redis } from "ioredis";
import { afterAll, expect, it } from "vitest";
import type { Lease } from "../../src/index.ts";
import { handoffLua } from "../../src/redis/lua.generated.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { onScript } from "../support/scripts-sent.ts";
import { until } from "../support/until.ts";

// Very many leases of one process are renewed a few at a time: what else the process does comes in between.

const parties = new Parties();
afterAll(parties.close);

const LEASES = 2_500;
/** ms. To take them all may take a third of it, on a slow and busy machine. */
const LEASE_TIME = 15_000;
const TOGETHER = 100;

interface Sent {
  /** How many locks; 0: another script. */
  readonly renewals: number;
  /** In which turn of the event loop. */
  readonly turn: number;
}

/** Records the scripts that a connection sends, and in which turn. */
function record(redis: Redis, onFirst: () => void): { sent: Sent[]; stop(): void } {
  const sent: Sent[] = [];
  let turn = 0;
  let immediate: NodeJS.Immediate | undefined;
  const next = (): void => {
    turn++;
    immediate = setImmediate(next);
  };
  const restore = onScript(redis, ({ args: [sha, keys] }, send) => {
    if (sent.length === 0) {
      setImmediate(onFirst);
      // Not sooner: it takes a whole core.
      next();
    }
    sent.push({ renewals: sha === handoffLua.renewStays.sha ? (Number(keys) - 1) / 2 : 0, turn });
    send();
  });
  const stop = () => {
    clearImmediate(immediate);
    restore();
  };
  return { sent, stop };
}

it("a tryLock() of a free lock goes out between the renewals of thousands of leases, without losing any", async ({
  annotate,
}) => {
  const { redis, locks } = await parties.join({ client: { leaseTime: LEASE_TIME } });
  const lost: unknown[] = [];
  locks.on("lost", (event) => lost.push(event));
  const leases = await Promise.all(
    Array.from({ length: LEASES / TOGETHER }, () =>
      locks.multiLock(Array.from({ length: TOGETHER }, () => freshName())).lock(),
    ),
  );
  let free: Promise<Lease | null> | undefined;
  const { sent, stop } = record(redis, () => {
    free = locks.lock(freshName()).tryLock();
  });
  const renewed = (): number => sent.reduce((sum, { renewals }) => sum + renewals, 0);
  await until(() => renewed() >= LEASES, { what: "all renewals" });
  stop();
  const turns = new Map<number, number>();
  for (const { turn, renewals } of sent) turns.set(turn, (turns.get(turn) ?? 0) + renewals);
  await annotate(`${turns.size} turns, at most ${Math.max(...turns.values())} renewals in one`);
  expect(Math.max(...turns.values())).toBeLessThanOrEqual(500);
  const tried = sent.findIndex(({ renewals }) => renewals === 0);
  expect(tried).toBeGreaterThan(0);
  expect(sent.slice(tried).some(({ renewals }) => renewals > 0)).toBe(true);
  await (await free)?.unlock();
  await until(() => leases.every((lease) => lease.remaining > 0.7 * LEASE_TIME), {
    what: "all to be renewed",
  });
  expect(lost).toEqual([]);
  await Promise.all(leases.map((lease) => lease.unlock()));
}, 120_000);
