import type { Event } from "../history/events.ts";
import { bodies } from "./bodies.ts";
import { endings } from "./endings.ts";
import { exclusion } from "./exclusion.ts";
import { losses } from "./losses.ts";
import { observers } from "./observers.ts";
import { processes } from "./processes.ts";
import { register } from "./register.ts";
import { serving } from "./serving.ts";
import { starvation } from "./starvation.ts";
import { tellStory } from "./tell-story.ts";
import { tokens } from "./tokens.ts";
import { turns } from "./turns.ts";
import type { Violation } from "./violation.ts";

const RULES = [
  exclusion,
  register,
  tokens,
  endings,
  starvation,
  losses,
  processes,
  turns,
  serving,
  observers,
  bodies,
];

/** What a history, in order, breaks of Holdfast's promises; the earliest first. */
export function check(events: readonly Event[]): Violation[] {
  const story = tellStory(events);
  return RULES.flatMap((rule) => rule(story)).sort((one, other) => one.at - other.at);
}
