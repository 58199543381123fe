import type { LockClient, RedisLike } from "../../index.ts";
import { quote } from "../../util/quote.ts";
import type { Action } from "./shown.ts";

/**
 * May this request see the page? A text means yes, and is the viewer's name, for the holder of a
 * lock that it breaks.
 */
export type Authorize = (
  request: Request,
) => boolean | string | Response | PromiseLike<boolean | string | Response>;

/** How the page is made. */
export interface LockUIOptions {
  /** Whose locks are shown: the client's, and all others on the same Redis behind the same prefix. */
  readonly locks: LockClient;
  /**
   * Decides about each request: true, or the viewer's name, lets it in, false refuses it with 403,
   * and a Response is the answer, such as one that asks for a password. Left out: only browsers of
   * this machine are let in, by `node`; `fetch` refuses everybody, because it does not see where a
   * request comes from. A proxy on this machine that adds nothing to what it hands on looks like a
   * browser: behind one, give an `authorize`.
   */
  readonly authorize?: Authorize | undefined;
  /**
   * What viewers may do: "recall" a lock that its holder keeps unused; "break" the hold that they
   * see. They need `authorize`. Default: nothing.
   */
  readonly actions?: readonly Action[] | undefined;
  /**
   * A connection to the Redis of the locks, with the same `keyPrefix`: where `observe()` writes,
   * for heat, history and losses, and where callers note that they wait for each other. Left out:
   * none of these is shown, and circles are a sign and no proof.
   */
  readonly redis?: Pick<RedisLike, "callBuffer" | "options"> | undefined;
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
  if (redis !== undefined && typeof redis?.callBuffer !== "function")
    fail("redis must be an ioredis connection");
  return { locks, authorize, actions: [...actions], redis };
}
