import { oversold, type Result, tokensGrow } from "./run.ts";
import { STOCK } from "./shop.ts";
import { WITH_TOKENS } from "./strategies.ts";

/** What a run has shown. */
export interface Verdict {
  readonly run: string;
  readonly text: string;
  /** `limit`: a strategy did what it cannot prevent; `broken`: it did not keep what it promises. */
  readonly is: "well" | "limit" | "broken";
}

/** The last line of the demo. */
export const READ_ON =
  "Read on in docs/fencing.md: how a shop refuses the late write of a worker that stood still.";

export function judge(result: Result): Verdict {
  const { strategy, stops, isFenced } = result;
  return {
    run: `${strategy}${stops ? `, a worker stopped${isFenced ? ", fenced" : ""}` : ""}`,
    ...seen(result),
  };
}

function seen(result: Result): Pick<Verdict, "text" | "is"> {
  const { strategy, sold, stock, stops, isFenced, refused } = result;
  const kept = sold === STOCK && stock === 0;
  // A lock alone cannot hold back a worker that stood still after it read the stock: only the shop
  // can refuse its write.
  const isPromised = strategy !== "none" && (!stops || isFenced || strategy === "optimistic");
  const grown = !WITH_TOKENS.includes(strategy) || (stops && !isFenced) || tokensGrow(result);
  if (kept && grown) {
    const late = isFenced && refused > 0 ? " The shop refused the late write by its token." : "";
    return { is: "well", text: `all ${STOCK} pieces were sold, and none twice.${late}` };
  }
  if (isPromised)
    return { is: "broken", text: `sold ${sold} of ${STOCK}, stock ${stock}. This should not happen.` };
  const why =
    strategy === "none"
      ? "without a lock, workers read the same stock, and each writes back its own result."
      : "the worker stood still until its lease was over, others sold, and then it wrote what it had computed before. No lock can prevent that.";
  return { is: "limit", text: `oversold by ${oversold(result)}: ${why}` };
}
