import { BaseClient } from "../base-client.ts";
import { GRANT_WINDOW } from "../defaults.ts";
import type { Lock } from "../locks/lock.ts";
import { duplicate, type RedisLike } from "../redis-like.ts";
import type { QuorumSettings } from "./options.ts";
import { Quorum } from "./quorum.ts";
import { QuorumKind } from "./quorum-kind.ts";
import { QuorumSubscriptions } from "./quorum-subscriptions.ts";

/**
 * The locks of one process on several independent masters: Redlock. Made by `createLockClient` with an array; it has what
 * a quorum can do.
 *
 * @example
 * const locks = createLockClient([redisA, redisB, redisC]);
 * await locks.lock("order:42").withLock(async (lease) => charge(order, { fence: lease.token }));
 * await locks.close();
 */
export class QuorumClient extends BaseClient {
  readonly #kind: QuorumKind;

  /** @internal */
  constructor(given: readonly RedisLike[], settings: QuorumSettings) {
    const connections = settings.connection === "own" ? given.map((redis) => duplicate(redis)) : given;
    const quorum = new Quorum(connections, settings);
    super({
      transport: quorum,
      subscribe: (audience) => new QuorumSubscriptions(quorum, audience),
      window: GRANT_WINDOW,
      leaseTime: settings.leaseTime,
      closed: () => {
        if (connections !== given) for (const redis of connections) redis.disconnect();
      },
    });
    this.#kind = new QuorumKind(quorum, settings, (kind, hold) => this.withdraw(kind, hold));
  }

  /**
   * The lock that a majority of the masters grants: parked waiters, wake-ups from every node, passes inside the process.
   *
   * @param name 1 to 512 bytes of UTF-8; any character.
   * @throws TypeError or RangeError for a bad name. Its leases and extensions throw a RangeError above `longestLease`.
   */
  lock(name: string): Lock {
    return this.lockOf(name, this.#kind);
  }
}
