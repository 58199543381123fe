import { randomUUID } from "node:crypto";
import type { Topology } from "./topology.ts";

/** A connection's credentials: options of ioredis. */
export interface User {
  username: string;
  password: string;
}

/**
 * Makes a user with these ACL rules on every server of a topology. The user may connect; everything
 * else depends on the rules.
 *
 * @example
 * const quiet = await addUser(topology, "~*", "&*", "+@all", "-publish");
 * const redis = topology.connect(quiet);
 * await redis.publish("a", "1"); // rejects with NOPERM
 */
export async function addUser(topology: Pick<Topology, "admins">, ...rules: string[]): Promise<User> {
  const user = { username: `user-${randomUUID()}`, password: randomUUID() };
  for (const admin of await topology.admins())
    await admin.acl("SETUSER", user.username, "on", `>${user.password}`, ...rules);
  return user;
}
