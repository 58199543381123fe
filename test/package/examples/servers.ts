// What the examples of the doc comments import in place of "ioredis" and "holdfast/quorum": the
// same, for the servers of the test.
import { createQuorumClient as create, type QuorumClient, type QuorumClientOptions } from "holdfast/quorum";
import * as ioredis from "ioredis";

export type * from "holdfast/quorum";

const ports: readonly number[] = JSON.parse(process.env.EXAMPLE_PORTS ?? "[]");
const opened = new Set<ioredis.Redis>();

/** A connection to one of the servers; `new Redis()` is to the first of them. */
export class Redis extends ioredis.Redis {
  constructor(index = 0) {
    super(ports[index] ?? 0, "127.0.0.1");
    opened.add(this);
  }
}

/** An example that is about something else does not close its connection. */
export function disconnectAll(): void {
  for (const redis of opened) redis.disconnect();
  opened.clear();
}

/** These servers have just been started, and would not vote yet. */
export const createQuorumClient = (
  masters: readonly ioredis.Redis[],
  options?: QuorumClientOptions,
): QuorumClient => create(masters, { restartDelay: 0, ...options });
