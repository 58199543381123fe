import type { NodeRedisLike, RedisLike } from "../api/redis.ts";
import { show } from "../api/validate.ts";
import { QUORUM_MIN } from "../defaults.ts";
import type { Link } from "../redis/driver.ts";
import { linkTo, noConnection } from "../redis/drivers.ts";

const CANNOT = "Cannot create a lock client";

/**
 * Independent masters, as Redlock needs them. Two connections to one server are only detected when
 * they are used.
 */
export function checkMasters(masters: readonly (RedisLike | NodeRedisLike)[]): Link[] {
  if (!Array.isArray(masters))
    throw new TypeError(
      `${CANNOT}: masters must be an array of connections, received ${linkTo(masters) ? "one connection: for one server it is createLockClient(redis)" : show(masters)}`,
    );
  if (masters.length < QUORUM_MIN)
    throw new RangeError(
      `${CANNOT}: of several masters there must be at least ${QUORUM_MIN}, of which one may fail, received ${masters.length}; for one server it is createLockClient(redis)`,
    );
  return masters.map((redis, i) => {
    const which = `${CANNOT}: connection ${i + 1} of ${masters.length}`;
    const link = linkTo(redis);
    if (!link) throw new TypeError(`${which} ${noConnection(redis)}`);
    if (link.kind === "cluster")
      throw new TypeError(
        `${which} is a Cluster; a quorum needs single masters that know nothing of each other`,
      );
    if (link.kind === "sentinel")
      throw new TypeError(
        `${which} follows Sentinel; a failover would lose votes: connect to the master itself`,
      );
    const first = masters.indexOf(redis);
    if (first < i)
      throw new TypeError(`${which} is the same as connection ${first + 1}: it would vote twice`);
    return link;
  });
}
