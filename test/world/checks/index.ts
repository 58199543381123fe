import type { Check, Run } from "../run.ts";
import { exclusion } from "./exclusion.ts";
import { keys } from "./keys.ts";
import { leases } from "./leases.ts";
import { order } from "./order.ts";
import { outcomes } from "./outcomes.ts";
import { tokens } from "./tokens.ts";
import { wakeUps } from "./wake-ups.ts";

/** Every promise that a run checks. */
export const checksOf = (run: Run): Check[] =>
  [exclusion, tokens, order, wakeUps, outcomes, leases, keys].map((check) => check(run));
