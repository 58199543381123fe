import { GRANT_WINDOW, RENEWAL_BATCH } from "../defaults.ts";
import type { Hold } from "../lease/hold.ts";
import type { Replication } from "../redis/replication.ts";
import type { AttemptAnswer } from "../redis/replies.ts";
import type { ScriptRunner } from "../redis/script-runner.ts";
import type { Ask, LockKind } from "../waiting/lock-kind.ts";
import { entryOf, HandoffScripts } from "./handoff-scripts.ts";

/**
 * The default lock, and its fair variant: waiters queue in Redis, and the unlock makes the next of them the owner.
 * `isFair`: a queue entry for every waiter and no passes, so that the order holds over all processes.
 */
export function handoffLock(
  commands: ScriptRunner,
  replication: Replication | null,
  isFair: boolean,
  passes: number,
  window: number,
): LockKind {
  const scripts = new HandoffScripts(commands, replication);
  const { keys } = commands;
  const queueing = (hold: Hold, ask: Ask): string => {
    hold.entry ||= entryOf(
      ask.channel?.counted ?? false,
      Math.min(shortest(ask), window),
      ask.passes,
      hold.id,
    );
    return hold.entry;
  };
  const attempt = (hold: Hold, ask: Ask): Promise<AttemptAnswer> => {
    const own = keys.of(hold.name);
    if (ask.mode === "again") return scripts.recheck(own, hold, ask, ask.channel?.counted ?? false);
    const entry = ask.mode === "queue" ? queueing(hold, ask) : "";
    const after = ask.after && { id: ask.after.id, lock: keys.of(ask.after.name).lock };
    return scripts.acquire(own, hold.id, ask, entry, after);
  };
  return {
    label: isFair ? "fairLock" : "lock",
    eventKind: isFair ? "fair" : "lock",
    protocol: "handoff",
    wake: { by: "grant", solitary: isFair },
    localPasses: passes,
    attempt,
    withdraw: (hold) => scripts.leave(keys.of(hold.name), hold.id, hold.entry ?? ""),
    release: (hold) => scripts.release(keys.of(hold.name), hold.id, hold.token),
    yield: (old, hold, ask) => {
      queueing(hold, ask);
      return scripts.yield(keys.of(hold.name), old, hold, ask);
    },
    batch: commands.isCluster ? 1 : RENEWAL_BATCH,
    renew: (holds, timeout) =>
      scripts.renew(
        holds.map((hold) => ({ ...hold, key: keys.of(hold.name).lock })),
        timeout,
      ),
    confirm: (hold, ttl, timeout) => scripts.claim(hold.name, keys.of(hold.name).lock, hold.id, ttl, timeout),
    isConfirmed: replication !== null,
    // Locks with the same clock share a slot: all of them on one server, in Cluster those behind a prefix with a tag.
    together: (name) => keys.of(name).clock,
    recount: null,
    inspect: (name) => scripts.inspect(keys.of(name)),
    forceRelease: (name, label) => scripts.forceRelease(keys.of(name), label),
  };
}

/**
 * RACE 12: a waiter that hears nothing finds its grant when it looks again. The grant must live until then, however short
 * the waiter's lease.
 */
const shortest = ({ channel, lease }: Ask): number =>
  channel?.isHeard === false ? Math.max(lease, GRANT_WINDOW) : lease;
