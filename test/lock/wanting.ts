import { afterAll, beforeAll } from "vitest";
import type { Lease, LockClientOptions } from "../../src/index.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { present } from "../support/present.ts";
import { until } from "../support/until.ts";

export const KINDS = ["lock", "fairLock"] as const;
type Kind = (typeof KINDS)[number];

/** A server for tests of `lease.wanted`, and its clients. */
export class WantedServer {
  readonly #parties = new Parties();
  #server: LocalServer | undefined;

  constructor() {
    beforeAll(async () => {
      this.#server = await launchServer();
    });
    afterAll(async () => {
      await this.#parties.close();
      await this.#server?.stop();
    });
  }

  get url(): string {
    return present(this.#server).url;
  }

  readonly join = (client?: LockClientOptions): Promise<Party> =>
    this.#parties.join({ url: this.url, ...(client && { client }) });

  /** A lock that a client holds which has done nothing before and hears nothing, and another client. */
  readonly hold = async (kind: Kind = "lock", client?: LockClientOptions) => {
    const [near, far] = [await this.join(client), await this.join()];
    const lock = new Onlooker(far.redis, freshName("wanted"));
    const lease: Lease = await near.locks[kind](lock.name).lock({ wait: 0 });
    return { near, far, lock, name: lock.name, lease };
  };
}

/** A caller that has queued in Redis; it gives the lock back when it has it. `leave`: it goes. */
export async function wait({ locks }: Party, lock: Onlooker, kind: Kind = "lock") {
  const controller = new AbortController();
  const { signal } = controller;
  const gone = locks[kind](lock.name)
    .lock({ signal })
    .then((lease) => lease.unlock())
    .catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  await lock.queued(1);
  const leave = (): Promise<void> => {
    controller.abort();
    return gone;
  };
  return { gone, leave };
}

export const aborted = (signal: AbortSignal): Promise<unknown> =>
  until(() => signal.aborted, { what: "an abort" });

/** The first read was answered. */
export const told = (lock: Onlooker, { redis }: Party): Promise<unknown> =>
  until(async () => /^1[12]/.test((await redis.get(lock.keys.lock)) ?? ""), {
    what: "a holder that is told",
  });
