import { oversold, type Result, SHORT_LEASE_MS, tokensGrow, WATCHED_MS } from "./run.ts";
import { STOCK } from "./shop.ts";
import { isWrong, type Strategy, WITH_TOKENS } from "./strategies.ts";

/** What a run has shown, and why. */
export interface Verdict {
  readonly text: string;
  /**
   * `damage`: what a wrong strategy does; `limit`: a right one did what it cannot prevent; `missed`:
   * the damage that was to be shown did not happen; `broken`: it did not keep what it promises.
   */
  readonly is: "well" | "damage" | "limit" | "missed" | "broken";
}

/** The end of the demo: where these things are explained. */
export const READ_ON: readonly (readonly [path: string, about: string])[] = [
  ["docs/choosing.md", "which lock to take, and all strategies compared"],
  ["docs/spin-lock.md", "the mistakes of the articles, and what to write instead"],
  ["docs/fencing.md", "how a shop refuses the late write of a stopped process"],
  ["docs/guarantees.md", "what each lock promises, failure by failure"],
];

export function judge(result: Result): Verdict {
  const { strategy, stops, isFenced } = result;
  if (strategy === "setnx-expire") return ofCrash(result);
  const isKept = result.sold === STOCK && result.stock === 0;
  if (strategy === "none" || isWrong(strategy)) return isKept ? MISSED : ofMistake(result);
  // A lock alone cannot hold back a worker that stood still after it read the stock: only the shop
  // can refuse its write.
  const isPromised = !stops || isFenced || strategy === "optimistic";
  if (isPromised) return isKept && hasGrown(result) ? ofSuccess(result) : ofFailure(result);
  return isKept ? MISSED : ofLateWrite(result);
}

const MISSED: Verdict = {
  is: "missed",
  text: `All ${STOCK} pieces were sold, and none twice: the damage needs some luck, and did not happen this time.`,
};

const hasGrown = (result: Result): boolean => !WITH_TOKENS.includes(result.strategy) || tokensGrow(result);

function ofCrash({ sold, left }: Result): Verdict {
  if (left === null || left.sold > 0 || left.ttl !== -1)
    return {
      is: "missed",
      text: "Others went on selling after the process was killed: the damage did not happen this time.",
    };
  return {
    is: "damage",
    text: `Nobody can sell any more, ${STOCK - sold} pieces are left: the process died before its EXPIRE, so the lock stays forever (PTTL says -1). The demo gave up after ${WATCHED_MS / 1_000} s.`,
  };
}

function ofMistake(result: Result): Verdict {
  const { strategy, deleted } = result;
  const over = `Oversold by ${oversold(result)}`;
  if (strategy === "none")
    return {
      is: "damage",
      text: `${over}: processes read the same stock, and each wrote back its own result.`,
    };
  if (deleted === 0)
    return {
      is: "damage",
      text: `${over}, but not by a late DEL: a lease of ${SHORT_LEASE_MS} ms ended during a sale, as it can on a busy machine.`,
    };
  const late = `the lock was another holder's by then, and DEL deleted it`;
  const times = deleted > 1 ? ` (${deleted} times)` : "";
  const then =
    strategy === "get-del"
      ? "so the next one sold the same piece."
      : "so the next one came in; each of them then deleted the lock of another one.";
  return { is: "damage", text: `${over}: ${late}${times}, ${then}` };
}

function ofLateWrite(result: Result): Verdict {
  const text = `Oversold by ${oversold(result)}: the process stood still until its lease was over, others sold, and then it wrote what it had computed before. No lock can prevent that.`;
  return { is: "limit", text };
}

function ofFailure(result: Result): Verdict {
  const { sold, stock } = result;
  const grow = hasGrown(result) ? "" : ", and a token was not larger than the one before";
  return { is: "broken", text: `Sold ${sold} of ${STOCK}, stock ${stock}${grow}. This should not happen.` };
}

function ofSuccess({ strategy, refused, isFenced }: Result): Verdict {
  const why = isFenced && refused > 0 ? "the shop refused the late write by its token" : WHY[strategy];
  return { is: "well", text: `All ${STOCK} pieces were sold, and none twice: ${why}.` };
}

const IN_TURN = "one caller was inside at a time, and each had a larger token than the one before";
const OWNED = "one caller was inside at a time, and only the owner released the lock";
const WHY: Partial<Record<Strategy, string>> = {
  optimistic: "EXEC refused every sale that had read an old stock, and the sale ran again",
  spin: OWNED,
  spinLock: OWNED,
  redisson: IN_TURN,
  "hand-off": IN_TURN,
  fair: IN_TURN,
  quorum: IN_TURN,
};
