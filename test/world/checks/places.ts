import { codes } from "../../../src/redis/codes.generated.ts";
import { channelOf, type Entry, entriesOf } from "../ownership.ts";
import type { Check, Run } from "../run.ts";

/** Places in the queues of Redis. */
export const places = (run: Run): Check => {
  const last = new Map<string, readonly Entry[]>();
  /** As the scripts judge it: see lua/liveness.lua. */
  const isDead = (key: string, { entry, hold, ticket }: Entry): boolean => {
    const { redis } = run.server;
    const channel = channelOf(hold);
    const clients = redis.find(key.replace(/:queue$/, ":clients"));
    const until = (digit: string): number =>
      (clients?.type === "zset" && clients.value.score(`${digit}${channel}`)) || 0;
    const kept = until("1") >= redis.micros ? "1" : until("0") >= redis.micros ? "0" : null;
    if (kept === null && redis.micros - ticket > codes.ENTRY_TTL) return true;
    return (kept ?? entry[0]) === "1" && redis.receivers(channel) === 0;
  };
  return {
    promise: "First come, first served: a waiter keeps its place until it has the lock or leaves.",
    ran(member, { script, keys }) {
      for (const key of keys) {
        const before = last.get(key) ?? [];
        const now = entriesOf(run, key);
        last.set(key, now);
        for (const one of before) {
          const { name, hold, process, ticket } = one;
          const same = now.find(({ entry }) => entry === one.entry);
          const who = `the place of process ${process} in the queue of ${name}`;
          if (same && same.ticket !== ticket) run.fail(`${script} moves ${who}: ${hold}`);
          if (same || process === member.process.number || !run.memberOf(process)) continue;
          // Or with a result that it waits for.
          const isServed = run.grants.had(hold) || /^remember\/(finish|take)/.test(script);
          if (!isServed && !isDead(key, one)) run.fail(`${script} removes ${who}: ${hold}`);
        }
      }
    },
  };
};
