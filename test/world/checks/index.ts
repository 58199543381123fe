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

/** Every promise that a run checks. Some are only checked if no key is deleted. */
export const checksOf = (run: Run): Check[] => {
  const always = [exclusion, tokens, order, wakeUps, outcomes, leases, keys, messages];
  return [...always, ...(run.isDirected ? [] : [places, turns, answers, losses])].map((check) => check(run));
};
