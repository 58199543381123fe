import type { CommonClient } from "../api/client.ts";
import type { Lock } from "../api/lock.ts";
import type { ReentranceOptions } from "../api/reentrance.ts";

/**
 * The locks of one process on several independent masters: Redlock. Made by `createQuorumClient`,
 * with the methods that a quorum supports. An interface, as `LockClient` is.
 *
 * @example
 * const locks = createQuorumClient([redisA, redisB, redisC]);
 * await locks.lock("order:42").withLock(async (lease) => charge(order, { fence: lease.token }));
 * await locks.close();
 */
export interface QuorumClient extends CommonClient {
  /**
   * The lock that a majority of the masters grants: parked waiters, wake-ups from every node, local
   * hand-offs.
   *
   * @param name 1 to 512 bytes of UTF-8; any character.
   * @throws TypeError or RangeError for a bad name or bad options. Its leases and extensions throw
   *   a RangeError above `longestLease`.
   * @example
   * await locks.lock("order:42").withLock((lease) =>
   *   charge(order, { signal: lease.signal, fence: lease.token }),
   * );
   */
  lock(name: string, options?: ReentranceOptions): Lock;
}
