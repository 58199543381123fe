import { parseArgs } from "node:util";
import { DRIVERS, type Driver } from "./connect.ts";
import { isWrong, STRATEGIES, type Strategy, WITH_TOKENS } from "./strategies.ts";

/** What the command line asks for. */
export interface Wanted {
  readonly plans: readonly Plan[];
  /** The Redis client that the library's locks run on. */
  readonly driver: Driver;
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

const DEFAULT = "none,setnx-expire,get-del,no-owner,spin,hand-off";

export const USAGE = `npm run demo -- [options]

  --strategy A,B,C     which strategies sell: all, or some of
                       ${STRATEGIES.slice(0, 6).join(", ")},
                       ${STRATEGIES.slice(6).join(", ")}
                       (${DEFAULT})
  --driver node-redis  Holdfast's locks run on node-redis; default: ioredis
  --no-stop            leave out the runs of right locks in which a process is
                       stopped
  --ui                 instead: a shop that stays open until Ctrl-C, at a pace
                       that a person can follow, and a page of its locks
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
      driver: { type: "string" },
      "no-stop": { type: "boolean" },
      ui: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return null;
  if (values.ui && (values.strategy ?? values.driver ?? values["no-stop"]) !== undefined)
    throw new Error("--ui has no runs, so it goes with no other option");
  const driver = DRIVERS.find((one) => one === (values.driver ?? "ioredis"));
  if (driver === undefined)
    throw new Error(`--driver must be ${DRIVERS.join(" or ")}, received '${values.driver}'`);
  if (values.ui) return { plans: [], driver, isOpen: true };
  const wanted = (values.strategy ?? DEFAULT).split(",").map((word) => word.trim());
  for (const word of wanted) {
    if (word !== "all" && !STRATEGIES.some((strategy) => strategy === word))
      throw new Error(`--strategy must be ${STRATEGIES.join(", ")} or all, received '${word}'`);
  }
  const chosen = STRATEGIES.filter((strategy) => wanted.includes("all") || wanted.includes(strategy));
  const calm = chosen.map((strategy) => ({ strategy, stops: false, isFenced: false }));
  const plans = values["no-stop"] ? calm : [...calm, ...chosen.flatMap(withStop)];
  return { plans, driver, isOpen: false };
}

/** Without a lock, or with a wrong one, it goes wrong as it is. */
function withStop(strategy: Strategy): Plan[] {
  if (strategy === "none" || isWrong(strategy)) return [];
  const plain = { strategy, stops: true, isFenced: false };
  return WITH_TOKENS.includes(strategy) ? [plain, { ...plain, isFenced: true }] : [plain];
}
