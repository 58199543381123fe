import { setTimeout as delay } from "node:timers/promises";
import type { Arena } from "../arenas/arena.ts";
import type { Fleet } from "../fleet.ts";
import type { Onlooker } from "../run.ts";
import type { Usage } from "../worker/usage.ts";
import { growth } from "./growth.ts";
import { type Leftovers, leftovers } from "./leftovers.ts";

/**
 * Workers that live from the beginning to the end, to see whether they grow. The others are killed
 * and closed.
 */
export const STEADY = 2;

/**
 * What happens in a soak: to processes, connections and messages, and to a server only what leaves
 * its data alone.
 */
export const SOAK_FAULTS = [
  "kill a worker",
  "close a client",
  "stop a worker",
  "block an event loop",
  "reconnect",
  "cut connections",
  "no network",
  "part connections",
  "strand commands",
  "drop replies",
  "drop a command",
  "deliver a command late",
  "execute a command twice",
  "forget the scripts",
  "hang up on clients",
  "pause clients",
] as const;

/** ms that calls have to end when a worker is to rest: longer than all leases, windows and re-checks. */
const RESTS_WITHIN = 60_000;
/** ms after the end of all workers at which nothing of them may be left in Redis. */
const GONE_AFTER = 10_000;

/** Asks whether a long run leaves anything behind: in processes that live on, and in Redis. */
export class Soak implements Onlooker {
  /** After a warm-up of a twelfth, and in the middle. */
  readonly looksAt = [1 / 12, 0.5];
  readonly #usages = new Map<string, Usage[]>();
  readonly #late: string[] = [];
  #before: Leftovers | null = null;
  #after: Leftovers | null = null;

  async begins({ wires }: Arena): Promise<void> {
    this.#before = await leftovers(wires);
  }

  async looks({ members }: Fleet): Promise<void> {
    await Promise.all(
      members.slice(0, STEADY).map(async (member) => {
        const { by } = member;
        const usage = await member.usage(RESTS_WITHIN);
        if (usage) this.#usages.set(by, [...(this.#usages.get(by) ?? []), usage]);
        else this.#late.push(`worker ${by}: calls did not end within ${RESTS_WITHIN} ms of rest`);
      }),
    );
  }

  async ends({ wires }: Arena): Promise<void> {
    await delay(GONE_AFTER);
    this.#after = await leftovers(wires);
  }

  /** What was found, and what of it must not be. */
  report(): { lines: readonly string[]; broken: readonly string[] } {
    const measured = [...this.#usages].map(([by, usages]) => ({ by, usages }));
    const { lines, broken } = growth(measured);
    const [before, after] = [this.#before, this.#after];
    if (measured.length < STEADY)
      broken.push(`only ${measured.length} of ${STEADY} workers were there from beginning to end`);
    if (!before || !after) return { lines, broken: [...broken, "nobody looked at Redis"] };
    const { keys, channels, patterns, documented } = after;
    const connections = after.connections - before.connections;
    const left = `left in Redis ${GONE_AFTER / 1_000} s after the end: ${keys.length} keys, ${channels.length} channels, ${patterns} patterns, ${connections} connections; as documented ${documented.join(", ")}`;
    if (keys.length + channels.length + patterns + connections > 0)
      broken.push([left, ...keys, ...channels].join(", "));
    return { lines: [...lines, left], broken: [...broken, ...this.#late] };
  }
}
