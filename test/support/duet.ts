import type { Redis } from "ioredis";
import { expect } from "vitest";
import type { Lease, LockClient, LockClientOptions } from "../../src/index.ts";
import { freshName, Parties, type Party } from "./fixture.ts";
import { Onlooker } from "./onlooker.ts";
import type { Connection } from "./servers/connection.ts";
import { timed } from "./stage.ts";
import { until } from "./until.ts";

interface DuetOptions {
  isCluster?: boolean;
  /** For both clients. */
  leaseTime?: number;
  /** Makes the clients, if the connection does not carry them. */
  create?: (redis: Redis, client: LockClientOptions | undefined) => LockClient;
}

/**
 * Two clients at one lock of a topology: one holds it, the other waits. The test decides what
 * happens to them in a failover.
 */
export class Duet {
  readonly holder: Party;
  readonly waiter: Party;
  readonly lock: Onlooker;
  /** Failed renewals that the clients report. */
  readonly errors: Error[] = [];
  readonly #parties: Parties;

  private constructor(parties: Parties, holder: Party, waiter: Party, lock: Onlooker) {
    this.#parties = parties;
    this.holder = holder;
    this.waiter = waiter;
    this.lock = lock;
    for (const { locks } of [holder, waiter]) locks.on("error", (error) => this.errors.push(error));
  }

  static async of(
    connect: () => Connection,
    { isCluster = false, leaseTime = 30_000, create }: DuetOptions = {},
  ): Promise<Duet> {
    const parties = new Parties();
    const how = { connect, client: { leaseTime, replyTimeout: 5_000 }, ...(create && { create }) };
    const [holder, waiter] = [await parties.join(how), await parties.join(how)];
    return new Duet(parties, holder, waiter, new Onlooker(waiter.redis, freshName(), { isCluster }));
  }

  /**
   * One holds it and the other waits. With a connection to their primary: its replica knows that
   * too.
   */
  async begin(primary?: Redis): Promise<{ held: Lease; waiting: Promise<Lease> }> {
    const { holder, waiter, lock } = this;
    const held = await holder.locks.lock(lock.name).lock();
    const waiting = waiter.locks.lock(lock.name).lock();
    await lock.queued(1);
    if (primary) await inStep(primary, `${lock.keys.lock}:written`);
    return { held, waiting };
  }

  /**
   * After a failover: the holder gives back the lock if it still has it, and the waiter gets it.
   * Returns the ms of both.
   */
  async handOn(held: Lease, waiting: Promise<Lease>): Promise<{ unlocking: number; waited: number }> {
    expect(await this.lock.holder()).toContain(this.holder.locks.id);
    const [, unlocking] = await timed(held.unlock());
    const [next, waited] = await timed(waiting);
    expect(next.token).toBeGreaterThan(held.token);
    await next.unlock();
    await this.expectMessages();
    return { unlocking, waited };
  }

  /** The lock goes back and forth, each time by message, and nothing is left. */
  async expectMessages(): Promise<void> {
    const { lock } = this;
    for (const [one, other] of [
      [this.holder, this.waiter],
      [this.waiter, this.holder],
    ] as const) {
      const held = await one.locks.lock(lock.name).lock();
      const waiting = other.locks.lock(lock.name).lock();
      await lock.queued(1);
      await held.unlock();
      const [lease, waited] = await timed(waiting);
      expect(waited).toBeLessThan(350); // a re-check would come after 1.1 s at the earliest
      await lease.unlock();
    }
    await lock.gone();
  }

  end(): Promise<void> {
    return this.#parties.close();
  }
}

/** WAIT proves something only for a connection that has written. */
export async function inStep(primary: Redis, key: string): Promise<void> {
  await primary.set(key, "1", "PX", 1_000);
  await until(async () => (await primary.wait(1, 1_000)) >= 1, { what: "a replica in step" });
}
