import { parseArgs } from "node:util";
import { STRATEGIES, type Strategy, WITH_TOKENS } from "./strategies.ts";

/** What may happen in a run. */
export interface Plan {
  readonly strategy: Strategy;
  /** One worker is stopped between reading and writing the stock, and goes on when others have sold. */
  readonly stops: boolean;
  /** The shop checks fencing tokens. */
  readonly isFenced: boolean;
}

export const USAGE = `npm run demo -- [options]

  --strategy none,spin,hand-off   which strategies sell: ${STRATEGIES.join(", ")}; or all
  --no-stop                       leave out the runs in which a worker is stopped
  --help`;

/**
 * The runs that the command line asks for: each strategy in the same order, first undisturbed, then with a worker that
 * is stopped while it sells, and the same with a shop that checks tokens. Null: only help was asked for.
 *
 * @throws Error that says what is wrong with it
 */
export function readPlans(args: readonly string[]): Plan[] | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      strategy: { type: "string", default: "none,spin,hand-off" },
      "no-stop": { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return null;
  const wanted = values.strategy.split(",").map((word) => word.trim());
  for (const word of wanted) {
    if (word !== "all" && !STRATEGIES.some((strategy) => strategy === word))
      throw new Error(`--strategy must be ${STRATEGIES.join(", ")} or all, received '${word}'`);
  }
  const chosen = STRATEGIES.filter((strategy) => wanted.includes("all") || wanted.includes(strategy));
  const calm = chosen.map((strategy) => ({ strategy, stops: false, isFenced: false }));
  return values["no-stop"] ? calm : [...calm, ...chosen.flatMap(withStop)];
}

function withStop(strategy: Strategy): Plan[] {
  const plain = { strategy, stops: true, isFenced: false };
  return WITH_TOKENS.includes(strategy) ? [plain, { ...plain, isFenced: true }] : [plain];
}
