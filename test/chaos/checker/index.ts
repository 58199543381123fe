import type { Event } from "../history/events.ts";
import { exclusion, register } from "./exclusion.ts";
import { bodies, observers } from "./leaders.ts";
import { losses } from "./losses.ts";
import { processes } from "./processes.ts";
import { results } from "./results.ts";
import type { Story } from "./story.ts";
import { tellStory } from "./tell-story.ts";
import { tokens } from "./tokens.ts";
import { turns } from "./turns.ts";
import type { Violation } from "./violation.ts";
import { endings, serving, starvation } from "./waiting.ts";

/**
 * What locks of all kinds are held to. What a kind allows stands in `allows.ts`, and what is
 * forgiven in `excuses.ts`.
 */
const RULES: readonly ((story: Story) => Violation[])[] = [
  exclusion,
  register,
  tokens,
  endings,
  starvation,
  losses,
  processes,
  turns,
  results,
  serving,
  observers,
  bodies,
];

/** What a history, in order, breaks of Holdfast's promises; the earliest first. */
export function check(events: readonly Event[]): Violation[] {
  const story = tellStory(events);
  return RULES.flatMap((rule) => rule(story)).sort((one, other) => one.at - other.at);
}
