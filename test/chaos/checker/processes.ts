import type { Story } from "./story.ts";
import type { Violation } from "./violation.ts";

/** No worker ends unless it is killed, and no rejection is left unhandled. */
export function processes(story: Story): Violation[] {
  return [...story.lives.values()].flatMap(({ by, dead, unhandled }) => {
    const found = unhandled.map(({ at, error }) => ({
      rule: "quiet processes",
      what: `unhandled in worker ${by}: ${error}`,
      at,
      calls: [],
    }));
    if (!dead || dead.meant) return found;
    const what = `worker ${by} ended by itself: ${dead.how}`;
    return [...found, { rule: "living processes", what, at: dead.at, calls: [] }];
  });
}
