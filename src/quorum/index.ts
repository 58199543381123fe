import type { NodeRedisLike, RedisLike } from "../api/redis.ts";
import { MajorityClient } from "./majority-client.ts";
import { checkMasters } from "./masters.ts";
import { checkQuorumOptions, type QuorumClientOptions } from "./options.ts";
import type { QuorumClient } from "./quorum-client.ts";

export type { QuorumClientOptions } from "./options.ts";
export type { QuorumClient } from "./quorum-client.ts";

/**
 * Creates a lock client on at least three independent masters: Redlock. The client to which a
 * majority of them has granted a lock holds it. An even number is allowed, and tolerates no more
 * failures than one less.
 *
 * @throws TypeError or RangeError for bad arguments: fewer than three, one of them twice, a
 *   Cluster, a Sentinel group.
 * @example
 * import { createQuorumClient } from "holdfast/quorum";
 * const locks = createQuorumClient([redisA, redisB, redisC]);
 */
export function createQuorumClient(
  masters: readonly (RedisLike | NodeRedisLike)[],
  options?: QuorumClientOptions,
): QuorumClient {
  const settings = checkQuorumOptions(options);
  return new MajorityClient(checkMasters(masters), settings);
}
