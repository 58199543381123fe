import type { Lock } from "../../src/index.ts";
import { lockKeys, redissonChannel } from "../../src/keys.ts";
import type { LockClientOptions } from "../../src/options.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { until } from "../support/until.ts";

export type Kind = "lock" | "fairLock" | "redissonLock";

/** Where lock kinds differ by design. */
export interface Traits {
  /** Leases carry fencing tokens. */
  readonly tokens: boolean;
  /** Redis keeps a queue and hands the lock on; without one it tells everybody to try again. */
  readonly queues: boolean;
}

/** The lock kind under test, with two clients that stand for two processes. */
export class Subject implements Traits {
  readonly kind: Kind;
  readonly tokens: boolean;
  readonly queues: boolean;
  readonly #parties = new Parties();
  readonly #names = new Set<string>();
  #first: Party | undefined;
  #second: Party | undefined;

  constructor(kind: Kind, traits: Traits) {
    this.kind = kind;
    this.tokens = traits.tokens;
    this.queues = traits.queues;
  }

  readonly open = async (): Promise<void> => {
    this.#first = await this.#parties.join();
    this.#second = await this.#parties.join();
  };

  readonly close = this.#parties.close;

  get first(): Party {
    return opened(this.#first);
  }

  get second(): Party {
    return opened(this.#second);
  }

  /** A further client; one that never waited has no subscriber yet. */
  join(client: LockClientOptions = {}): Promise<Party> {
    return this.#parties.join({ client });
  }

  /** A lock name of its own for a test, which must leave nothing under it. */
  name(name = freshName(this.kind)): string {
    this.#names.add(name);
    return name;
  }

  of(party: Party, name: string): Lock {
    return party.locks[this.kind](name);
  }

  /** One lock as two processes see it. */
  pair(name = this.name()): { name: string; mine: Lock; theirs: Lock } {
    return { name, mine: this.of(this.first, name), theirs: this.of(this.second, name) };
  }

  /** The key that is there while the lock is held. */
  key(name: string): string {
    return this.queues ? lockKeys(name).lock : name;
  }

  /** How many clients wait, as Redis sees them. */
  async waiting(name: string): Promise<number> {
    const { redis } = this.first;
    if (this.queues) return redis.zcard(lockKeys(name).queue);
    const [, listeners] = await redis.pubsub("NUMSUB", redissonChannel("", name));
    return Number(listeners);
  }

  /** Resolves when so many clients wait in Redis: 1 if they all belong to one client and the kind shares its place. */
  async untilWaiting(name: string, count: number): Promise<void> {
    // A place that nobody gave back goes by itself after 4.5 s: that must not pass for giving it back.
    const timeout = count === 0 ? 1_500 : 10_000;
    await until(async () => (await this.waiting(name)) === count, {
      timeout,
      what: `${count} waiting in Redis`,
    });
  }

  /** Every test gives back what it took: no lock, no place in a queue, no subscription stays. */
  readonly leavesNothing = async (): Promise<void> => {
    const names = [...this.#names];
    this.#names.clear();
    for (const name of names) {
      const { lock, queue, waiters } = lockKeys(name);
      const keys = this.queues ? [lock, queue, waiters] : [name];
      const isClean = async () =>
        (await this.first.redis.exists(...keys)) === 0 && (await this.waiting(name)) === 0;
      await until(isClean, { timeout: 1_500, what: `the test to leave nothing of ${JSON.stringify(name)}` });
    }
  };
}

function opened(party: Party | undefined): Party {
  if (party === undefined) throw new Error("The subject is not open yet: use it inside of tests");
  return party;
}
