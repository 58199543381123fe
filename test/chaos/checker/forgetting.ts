import { LONGEST_LEASE } from "../settings.ts";
import type { Forgetting, Hold } from "./story.ts";

/**
 * What a server forgot cannot exclude: a hold from before and one from after may overlap. Which of both a hold is, its
 * times tell where they can; else its token does, which is the server's µs at the grant. Some locks have no tokens.
 */
export class Excuses {
  readonly #forgettings: readonly Forgetting[];
  /** Holds that were passed on inside a process: granted earlier than they were asked for, perhaps. */
  readonly #passed: ReadonlySet<Hold>;

  constructor(forgettings: readonly Forgetting[], holds: readonly Hold[]) {
    this.#forgettings = forgettings;
    this.#passed = passed(holds);
  }

  isPassed(hold: Hold): boolean {
    return this.#passed.has(hold);
  }

  /** May these two overlap? */
  lie(one: Hold, other: Hold): boolean {
    return this.#forgettings.some(
      (forgetting) =>
        (this.#mayBeBefore(one, forgetting) && this.#mayBeAfter(other, forgetting)) ||
        (this.#mayBeBefore(other, forgetting) && this.#mayBeAfter(one, forgetting)),
    );
  }

  /** Was it granted before the forgetting was over? */
  #mayBeBefore(hold: Hold, { at, to }: Forgetting): boolean {
    // What was granted before is passed on inside a process no longer than this.
    if (hold.token === 0) return hold.from < at + LONGEST_LEASE * 1_000;
    if (hold.call.asked > at && !this.#passed.has(hold)) return false;
    return hold.token <= to;
  }

  /** Was it granted after the forgetting began? */
  #mayBeAfter(hold: Hold, { since, from }: Forgetting): boolean {
    return hold.from > since && (hold.token === 0 || hold.token >= from);
  }
}

/** A pass has the token after that of its process's hold before it. */
function passed(holds: readonly Hold[]): Set<Hold> {
  const tokens = new Set(holds.map((hold) => `${hold.call.by} ${hold.token}`));
  return new Set(holds.filter((hold) => tokens.has(`${hold.call.by} ${hold.token - 1}`)));
}
