import { setImmediate as nextTurn } from "node:timers/promises";
import type { Redis } from "ioredis";

export interface UnhandledTracker {
  /** Rejects if an unhandled rejection or a process warning was seen since the last call. */
  assertNone(): Promise<void>;
  /** Stops listening. */
  stop(): void;
}

/**
 * Records unhandled rejections and process warnings from now on, except warnings with these codes.
 */
export function trackUnhandled(options: { ignore?: readonly string[] } = {}): UnhandledTracker {
  const seen: string[] = [];
  const onRejection = (reason: unknown) => seen.push(`unhandled rejection: ${describe(reason)}`);
  const onWarning = (warning: Error & { code?: string }) => {
    // A lease that a test drops is collected at any time, mostly during another test.
    if (/was garbage collected/.test(warning.message)) return;
    if (!options.ignore?.includes(warning.code ?? "")) seen.push(`warning: ${describe(warning)}`);
  };
  process.on("unhandledRejection", onRejection);
  process.on("warning", onWarning);

  return {
    async assertNone() {
      await nextTurn(); // Node reports both only when the microtasks of this turn are done.
      const since = seen.splice(0); // reported once: later tests did not cause it
      if (since.length > 0) throw new Error(`Expected a quiet process, but saw\n${since.join("\n")}`);
    },
    stop() {
      process.off("unhandledRejection", onRejection);
      process.off("warning", onWarning);
    },
  };
}

/**
 * The resources that keep the process alive, by kind ("TCPSocketWrap", "Timeout", …), to compare
 * before and after.
 */
export function activeResources(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/** The ids of all connections of this type to the server, except our own. */
export async function connectionIds(
  redis: Pick<Redis, "client" | "call">,
  type: "normal" | "pubsub",
): Promise<number[]> {
  const own = await redis.client("ID");
  const list = String(await redis.call("CLIENT", "LIST", "TYPE", type));
  return [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => Number(id)).filter((id) => id !== own);
}

/**
 * The keys that match a glob pattern and would stay forever, in order. The client must have no
 * `keyPrefix`.
 */
export async function keysWithoutTtl(redis: Pick<Redis, "scan" | "pttl">, pattern = "*"): Promise<string[]> {
  const found = new Set<string>(); // SCAN may name a key twice
  let cursor = "0";
  do {
    const [next, keys] = await redis.scan(cursor, "MATCH", pattern, "COUNT", 1_000);
    const ttls = await Promise.all(keys.map((key) => redis.pttl(key)));
    for (const [index, key] of keys.entries()) if (ttls[index] === -1) found.add(key);
    cursor = next;
  } while (cursor !== "0");
  return [...found].sort();
}

function describe(reason: unknown): string {
  return reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
}
