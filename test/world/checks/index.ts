import type { Check, Run } from "../run.ts";
import { answers } from "./answers.ts";
import { closes } from "./closes.ts";
import { exclusion } from "./exclusion.ts";
import { extensions } from "./extensions.ts";
import { free } from "./free.ts";
import { intervals } from "./intervals.ts";
import { keys } from "./keys.ts";
import { leases } from "./leases.ts";
import { losses } from "./losses.ts";
import { messages } from "./messages.ts";
import { observers } from "./observers.ts";
import { order } from "./order.ts";
import { outcomes } from "./outcomes.ts";
import { places } from "./places.ts";
import { results } from "./results.ts";
import { several } from "./several.ts";
import { tokens } from "./tokens.ts";
import { turns } from "./turns.ts";
import { wakeUps } from "./wake-ups.ts";

/** Every promise that a run checks. Some are only checked if no key is deleted. */
export const checksOf = (run: Run): Check[] => {
  const always = [exclusion, tokens, order, wakeUps, outcomes, leases, keys, messages];
  const others = run.isDirected
    ? []
    : [places, turns, answers, losses, free, observers, extensions, closes, several, intervals, results];
  return [...always, ...others].map((check) => speaking(run, check(run)));
};

/** A failure says what was promised. */
function speaking(run: Run, check: Check): Check {
  const parts = Object.entries(check).map(([name, part]) => {
    if (typeof part !== "function") return [name, part] as const;
    const look = (...given: unknown[]): void => {
      run.promise = check.promise;
      try {
        part(...given);
      } finally {
        run.promise = null;
      }
    };
    return [name, look] as const;
  });
  return Object.fromEntries(parts) as unknown as Check;
}
