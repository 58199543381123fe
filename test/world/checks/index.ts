import type { Check, Run } from "../run.ts";
import { answers } from "./answers.ts";
import { exclusion } from "./exclusion.ts";
import { keys } from "./keys.ts";
import { leases } from "./leases.ts";
import { losses } from "./losses.ts";
import { messages } from "./messages.ts";
import { order } from "./order.ts";
import { outcomes } from "./outcomes.ts";
import { places } from "./places.ts";
import { tokens } from "./tokens.ts";
import { turns } from "./turns.ts";
import { wakeUps } from "./wake-ups.ts";

/** Every promise that a run checks. */
export const checksOf = (run: Run): Check[] =>
  [exclusion, tokens, order, places, turns, wakeUps, outcomes, answers, leases, losses, keys, messages].map(
    (check) => check(run),
  );
