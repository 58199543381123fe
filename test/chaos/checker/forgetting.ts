import { LONGEST_LEASE } from "../settings.ts";
import { type Forgetting, type Hold, type Story, stoodStill } from "./story.ts";

/**
 * ms after a loss in which a turn may still begin in a hold from before: a process asks whether it has the lock when it has
 * not heard so for 100 ms. The rest is for a busy machine.
 */
const LAST_PASS = 100 + 400;

/**
 * What a server forgot cannot exclude: a hold from before and one from after may overlap. Which of both a hold is, its
 * times tell where they can; else its token does, which is the server's µs at the grant. Some locks have no tokens.
 */
export class Excuses {
  readonly #story: Story;
  /** Holds that were passed on inside a process: granted earlier than they were asked for, perhaps. */
  readonly #passed: ReadonlySet<Hold>;

  constructor(story: Story, holds: readonly Hold[]) {
    this.#story = story;
    this.#passed = passed(holds);
  }

  isPassed(hold: Hold): boolean {
    return this.#passed.has(hold);
  }

  /**
   * Has a reader the token of a phase that began while servers were exchanged? Its first reader may be a command whose caller has
   * given up, and the old server may give others newer tokens meanwhile.
   */
  isOfExchange({ call, token }: Hold): boolean {
    return (
      call.kind === "readLock" && this.#story.forgettings.some(({ from, to }) => token >= from && token <= to)
    );
  }

  /** May these two overlap? */
  lie(one: Hold, other: Hold): boolean {
    return this.#story.forgettings.some(
      (forgetting) =>
        (this.#mayBeBefore(one, forgetting) && this.#mayBeAfter(other, forgetting)) ||
        (this.#mayBeBefore(other, forgetting) && this.#mayBeAfter(one, forgetting)),
    );
  }

  /** Was it granted before the forgetting was over? */
  #mayBeBefore(hold: Hold, { at, to }: Forgetting): boolean {
    // What was granted before is passed on inside a process no longer than this.
    if (hold.token === 0) return hold.from < at + LONGEST_LEASE * 1_000;
    const { asked, by } = hold.call;
    if (asked > at && !this.#passed.has(hold)) return false;
    const still = stoodStill(this.#story.lives.get(by), at, hold.from);
    if (asked > at && hold.from > at + still + LAST_PASS * 1_000) return false;
    return timeOf(hold) <= to;
  }

  /** Was it granted after the forgetting began? */
  #mayBeAfter(hold: Hold, { since, from }: Forgetting): boolean {
    // A reader has the token of those that it finds, also when that is all that a server remembers.
    const hasTime = hold.token !== 0 && hold.call.kind !== "readLock";
    return hold.from > since && (!hasTime || timeOf(hold) >= from);
  }
}

/** The server's µs at the grant, by the token; of a run once per interval it is in ms, so that any µs of that one counts. */
const timeOf = ({ call: { kind }, token }: Hold): number => (kind === "once" ? token * 1_000 + 999 : token);

/**
 * A pass has the token after that of its process's hold before it; a reader that comes to others, in this process or in
 * another one, has theirs.
 */
function passed(holds: readonly Hold[]): Set<Hold> {
  const known = new Set<string>();
  return new Set(
    holds.filter(({ call: { by, kind }, token }) => {
      const isJoined = kind === "readLock" && known.has(`reads ${token}`);
      known.add(`${by} ${token}`);
      if (kind === "readLock") known.add(`reads ${token}`);
      return isJoined || known.has(`${by} ${token - 1}`);
    }),
  );
}
