import { owners } from "../ownership.ts";
import type { Check, Member, Run } from "../run.ts";

/** In ms: the longest time to the next re-check, and the answer to it. */
const RECHECKED = 1_975;
/** Kinds whose waiters have places in Redis, and that one caller holds alone. */
const QUEUED = /^(lock|fair|mixed|election|remember):/;
/** What stands in the key of a lock's tokens when none is left. */
const USED_UP = String(Number.MAX_SAFE_INTEGER);

export const free = (run: Run): Check => {
  const freeSince = new Map<string, number>();
  const trouble = new Map<Member, number>();
  let hadTokensAt = 0;
  return {
    promise: "A waiter finds by a re-check, within 1.9 s, that the lock is free: whatever was lost before.",
    inspect() {
      const { now } = run.time;
      const { redis } = run.server;
      for (const member of run.members) if (!run.isWell(member)) trouble.set(member, now);
      const held = new Set(owners(run).map(({ name }) => name));
      const waited = new Set<string>();
      for (const { name, wait, member, since, together } of run.requests) {
        if (wait === null || together || held.has(name) || !QUEUED.test(name)) continue;
        waited.add(name);
        const from = freeSince.get(name) ?? now;
        freeSince.set(name, from);
        // Without a token nobody can have it, and waiters try again at their own pace.
        for (const key of redis.keys.keys()) {
          const kept = key.startsWith("holdfast:clock") ? redis.find(key) : undefined;
          if (kept?.type === "string" && kept.value === USED_UP) hadTokensAt = now;
        }
        const waits =
          now - Math.max(from, since, trouble.get(member) ?? 0, member.network.lostAt, hadTokensAt);
        if (waits > RECHECKED + run.slack)
          run.fail(
            `${name} has been free for ${(now - from).toFixed(0)} ms, and ${member.process.name}, which is ` +
              `well, has waited for ${waits.toFixed(0)} ms`,
          );
      }
      for (const name of freeSince.keys()) if (!waited.has(name)) freeSince.delete(name);
    },
  };
};
