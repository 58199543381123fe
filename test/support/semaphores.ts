import type { LockClientOptions, Semaphore } from "../../src/index.ts";
import { freshName } from "./fixture.ts";
import { OwnServer } from "./own-server.ts";
import { until } from "./until.ts";

/** A server for the semaphores of one file. */
export class SemaphoreServer extends OwnServer {
  /** One semaphore as several processes see it. */
  async open<N extends number>(
    count: N,
    permits?: number,
    client: LockClientOptions = {},
    fair = false,
  ): Promise<Semaphore[] & { length: N }> {
    const name = freshName();
    const parties = await Promise.all(
      Array.from({ length: count }, () => this.parties.join({ url: this.url, client })),
    );
    return parties.map(({ locks }) => locks.semaphore(name, { permits, fair })) as Semaphore[] & {
      length: N;
    };
  }

  /** The same, with a place in the queue for each caller. */
  openFair<N extends number>(count: N, permits: number): Promise<Semaphore[] & { length: N }> {
    return this.open(count, permits, {}, true);
  }
}

/** Resolves when this many callers wait in Redis. */
export const waiting = (slots: Semaphore, count: number): Promise<true> =>
  until(async () => (await slots.inspect()).waiters.length === count, { what: `${count} waiting` });
