import { createHash } from "node:crypto";
import type { ClusterLike, NodeRedisLike, RedisArgument, RedisLike } from "../api/redis.ts";
import { checkOptions, checkText, checkValue, type Rule } from "../api/validate.ts";
import type { Script } from "../redis/script.ts";
import { fencingLua } from "./lua.generated.ts";
import { ARGUMENT, checkConnection, checkFence, FENCE, type FenceOptions } from "./options.ts";
import { write } from "./write.ts";

/** A script's arguments and its fence. */
export interface FencedEvalOptions extends FenceOptions {
  /**
   * The script's KEYS, without the connection's `keyPrefix` and the call's `prefix`. Default: none;
   * then `resource` is required.
   */
  keys?: readonly string[] | undefined;
  /** The script's ARGV. Default: none. */
  args?: readonly RedisArgument[] | undefined;
}

const list = { wanted: "an array", fits: Array.isArray, fallback: [] };
const RULES = {
  ...FENCE,
  keys: list as Rule<readonly string[]>,
  args: list as Rule<readonly RedisArgument[]>,
};

/**
 * Runs a Lua script, unless a holder with a larger token came before: Redis runs the check, the
 * storing of the token and the script's own writes as one script. Resolves with what the script
 * returns.
 *
 * The script sees its own KEYS and ARGV only. The check comes before its first line (after a
 * `#!lua` line, if there is one) without a line of its own, so line numbers in errors are right. As
 * always in Redis, an error of the script undoes nothing; the token is stored then. The result
 * "QUEUED" counts as an error, because it is Redis's answer inside MULTI.
 *
 * @param script Lua. Redis stores every script that it has run: give values as `args`, not in the text.
 * @throws as `fencedSet`; with several keys, or none, also TypeError without `resource`: a
 *   resource's fence must not depend on the order of its keys. An error of the script is the
 *   `cause` of a FencedWriteError.
 * @example
 * import { fencedEval } from "holdfast/fencing";
 * const PAY = 'return redis.call("HSET", KEYS[1], "status", ARGV[1])';
 * await fencedEval(redis, PAY, { keys: ["order:42"], args: ["paid"], fence: lease.token });
 */
export async function fencedEval(
  redis: RedisLike | ClusterLike | NodeRedisLike,
  script: string,
  options: FencedEvalOptions,
): Promise<unknown> {
  const what = "Cannot run a script behind a fence";
  checkConnection(what, redis);
  checkText(what, "script", script);
  const { keys, args, ...fence } = checkOptions(what, RULES, options);
  for (const [i, key] of keys.entries()) checkText(what, `keys[${i}]`, key);
  for (const [i, arg] of args.entries()) checkValue(what, `args[${i}]`, arg, ARGUMENT);
  const terms = checkFence(what, fence, keys.length === 1 ? keys[0] : undefined);
  return write(redis, { what, script: fenced(script), keys, args }, terms);
}

const CHECK = fencingLua.check.lua.replaceAll("\n", " ");

/** The script with the check before it, on the same line. Redis wants `#!` at the very beginning. */
function fenced(script: string): Script {
  const [shebang = ""] = /^#!.*(\n|$)/.exec(script) ?? [];
  const lua = `${shebang}${CHECK} ${script.slice(shebang.length)}`;
  return { name: "fencedEval", lua, sha: createHash("sha1").update(lua).digest("hex"), isForeign: true };
}
