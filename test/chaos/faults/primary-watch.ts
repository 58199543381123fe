import { setTimeout as delay } from "node:timers/promises";
import type { Told } from "../history/events.ts";
import { forgetting } from "./forgetting.ts";

const EVERY = 30;
/** ms after which a server that does not answer may be anything. */
const UNSURE_AFTER = 300;

/**
 * The nodes that take writes at the moment, each with what makes it another one after a failover;
 * null: that cannot be known.
 */
export type Look = () => Promise<{ readonly primaries: string; readonly tooMany: boolean } | null>;

/**
 * Watches who takes writes. A failover is not only what the director orders: on a busy machine
 * servers seem to be down that are not. What was promised before it may be forgotten, and while
 * there are two primaries, two may hold a lock.
 *
 * @returns ends the watch
 */
export function watchPrimaries(look: Look, tell: (told: Told) => void): () => void {
  let isOver = false;
  const watch = async (): Promise<void> => {
    let known = "";
    let hadTooMany = false;
    let forgotten = forgetting({ tell }, "failover");
    while (!isOver) {
      const next = forgetting({ tell }, "failover");
      const seen = await Promise.race([look().catch(() => null), delay(UNSURE_AFTER, null)]);
      if (seen?.tooMany) hadTooMany = true;
      else if (seen) {
        if (hadTooMany || (known !== "" && known !== seen.primaries)) forgotten();
        hadTooMany = false;
        known = seen.primaries;
        forgotten = next;
      }
      await delay(EVERY);
    }
  };
  void watch();
  return () => {
    isOver = true;
  };
}
