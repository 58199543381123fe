import { parseArgs } from "node:util";
import { STRATEGIES, type Strategy, WITH_TOKENS } from "./strategies.ts";

/** What the command line asks for. */
export interface Wanted {
  readonly plans: readonly Plan[];
  /** Instead of runs: a shop that stays open, and the page of its locks. */
  readonly isOpen: boolean;
}

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
  --ui                            instead: a shop that stays open until Ctrl-C, at a pace that a person can follow,
                                  and a page of its locks for the browser
  --help`;

/**
 * The runs that the command line asks for: each strategy in the same order, first undisturbed, then
 * with a worker that is stopped while it sells, and the same with a shop that checks tokens. Null:
 * only help was asked for.
 *
 * @throws Error that says what is wrong with it
 */
export function readArguments(args: readonly string[]): Wanted | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      strategy: { type: "string" },
      "no-stop": { type: "boolean" },
      ui: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return null;
  if (values.ui && (values.strategy !== undefined || values["no-stop"]))
    throw new Error("--ui has no runs, so it goes with no other option");
  if (values.ui) return { plans: [], isOpen: true };
  const wanted = (values.strategy ?? "none,spin,hand-off").split(",").map((word) => word.trim());
  for (const word of wanted) {
    if (word !== "all" && !STRATEGIES.some((strategy) => strategy === word))
      throw new Error(`--strategy must be ${STRATEGIES.join(", ")} or all, received '${word}'`);
  }
  const chosen = STRATEGIES.filter((strategy) => wanted.includes("all") || wanted.includes(strategy));
  const calm = chosen.map((strategy) => ({ strategy, stops: false, isFenced: false }));
  return { plans: values["no-stop"] ? calm : [...calm, ...chosen.flatMap(withStop)], isOpen: false };
}

function withStop(strategy: Strategy): Plan[] {
  const plain = { strategy, stops: true, isFenced: false };
  return WITH_TOKENS.includes(strategy) ? [plain, { ...plain, isFenced: true }] : [plain];
}
