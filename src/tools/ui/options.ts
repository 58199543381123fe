import type { ClusterLike, LockClient, NodeRedisLike, RedisLike } from "../../index.ts";
import { linkTo, noConnection } from "../../inside.ts";
import { quote } from "../../util/quote.ts";
import type { Action } from "./shown.ts";

/**
 * May this request see the page? A text means yes, and is the viewer's name, for the holder of a
 * lock that the viewer force-releases.
 */
export type Authorize = (
  request: Request,
) => boolean | string | Response | PromiseLike<boolean | string | Response>;

/** The options of `createLockUI`. */
export interface LockUIOptions {
  /** A lock client: the page shows all locks on its Redis with its key prefix. */
  readonly locks: LockClient;
  /**
   * Decides about each request: true, or the viewer's name, admits it, false refuses it with 403,
   * and a Response, a new one for each request, is the answer, such as one that asks for a password.
   * Left out: only browsers of this machine are admitted, by `node`; `fetch` refuses all requests,
   * because it does not see where a request comes from. A proxy on this machine that does not mark
   * forwarded requests looks like a browser: behind one, give an `authorize`.
   */
  readonly authorize?: Authorize | undefined;
  /**
   * What viewers may do: "recall" a cached lock that is not in use; "break" (force-release) the hold
   * that they see. They need `authorize`. Default: nothing.
   */
  readonly actions?: readonly Action[] | undefined;
  /**
   * A connection to the Redis of the locks, with the same `keyPrefix`; the client's `prefix` counts
   * here too. To read the reports of `observe()` (wait times, calls that ended, losses), the notes of
   * waiting callers (deadlocks), and INFO (restarts, full memory, slow answers). Left out:
   * none of these is shown, and no deadlock is proven.
   */
  readonly redis?: RedisLike | ClusterLike | NodeRedisLike | undefined;
}

const KNOWN = ["locks", "authorize", "actions", "redis"];
const ACTIONS: readonly Action[] = ["recall", "break"];

/** @throws TypeError for bad options. */
export function checkUIOptions(options: unknown): LockUIOptions {
  const fail = (what: string): never => {
    throw new TypeError(`Cannot create the page of locks: ${what}`);
  };
  if (typeof options !== "object" || options === null) return fail("it takes { locks }");
  const unknown = Object.keys(options).find((name) => !KNOWN.includes(name));
  if (unknown !== undefined) fail(`unknown option ${quote(unknown)}; known are ${KNOWN.join(", ")}`);
  const { locks, authorize, actions = [], redis } = options as Partial<LockUIOptions>;
  if (typeof locks?.list !== "function" || typeof locks.lock !== "function")
    return fail("locks must be a lock client of one Redis, made by createLockClient()");
  if (authorize !== undefined && typeof authorize !== "function") fail("authorize must be a function");
  if (!Array.isArray(actions) || actions.some((one) => !ACTIONS.includes(one)))
    fail(`actions must be an array of ${ACTIONS.map((one) => `"${one}"`).join(" and ")}`);
  if (actions.length > 0 && authorize === undefined)
    fail("actions need authorize, the function that says which requests may do them");
  if (redis !== undefined && !linkTo(redis)) fail(`redis ${noConnection(redis)}`);
  return { locks, authorize, actions: [...actions], redis };
}
