import { quoteAll } from "../util/quote.ts";

/**
 * A lock has no unlock: Redisson's idiom would release whatever this process holds by then. The
 * error tells JavaScript callers what to do.
 */
export function noUnlock(names: readonly string[]): TypeError {
  return new TypeError(
    `Cannot unlock ${quoteAll(names)}: a lock has no unlock(); keep the lease that tryLock() or lock() gave, and call lease.unlock()`,
  );
}
