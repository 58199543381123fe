import type { Ran } from "./network.ts";
import { nameOf, type Owned, ownersOf } from "./ownership.ts";
import type { Run } from "./run.ts";

/** How a hold came into Redis. */
export interface Grant extends Owned {
  /** The script that wrote it, when, and how long before that the script was sent. */
  readonly script: string;
  readonly at: number;
  readonly age: number;
  readonly isFirst: boolean;
  /**
   * A late copy of a command made it, after its hold had ended, or after its reply; or a command that its
   * caller had given up.
   */
  readonly isGhost: boolean;
}

/** Scripts by which one hold ends and another one begins. */
const PASSING = /release|leave|yield|end|finish|set-permits|force/;

/** In ms: a caller waits no longer for the answer to a command, and then withdraws its hold. */
const GIVEN_UP = 5_000;

/** Follows who owns what, script by script. */
export class Grants {
  readonly #run: Run;
  readonly #present = new Map<string, Map<string, Grant>>();
  readonly #ended = new Set<string>();

  constructor(run: Run) {
    this.#run = run;
  }

  /** After a script. Returns the holds that it has brought into Redis, and those that it has ended. */
  ran({ script, keys, age, isFirst, isCopy }: Ran): { made: Grant[]; ended: Grant[] } {
    const made: Grant[] = [];
    const ended: Grant[] = [];
    for (const key of keys) {
      if (nameOf(key) === null) continue;
      const before = this.#present.get(key);
      const now = new Map<string, Grant>();
      for (const owned of ownersOf(this.#run, key)) {
        const isLate = (isCopy || (isFirst && age > GIVEN_UP)) && !PASSING.test(script);
        const isGhost = isLate || this.#ended.has(owned.hold);
        const known = before?.get(owned.hold);
        const grant = known ?? { ...owned, script, at: this.#run.time.now, age, isFirst, isGhost };
        now.set(owned.hold, grant);
        if (!known) made.push(grant);
      }
      for (const [hold, grant] of before ?? []) {
        if (now.has(hold)) continue;
        this.#ended.add(hold);
        ended.push(grant);
      }
      this.#present.set(key, now);
    }
    return { made, ended };
  }

  /** What this process has of that name. */
  ownedBy(name: string, process: number): Grant[] {
    return [...this.#present.values()].flatMap((holds) =>
      [...holds.values()].filter((one) => one.name === name && one.process === process),
    );
  }

  /** Has this hold ever owned anything? */
  had(hold: string): boolean {
    return this.#ended.has(hold) || [...this.#present.values()].some((holds) => holds.has(hold));
  }

  of({ key, hold }: Owned): Grant | undefined {
    return this.#present.get(key)?.get(hold);
  }

  /** Was it given by the release of another one, and not asked for again? */
  isPassed(owned: Owned): boolean {
    const grant = this.of(owned);
    return grant !== undefined && !grant.isGhost && this.isByPassing(grant);
  }

  /** Did it come by a script that ended another one? */
  isByPassing({ script }: Grant): boolean {
    return PASSING.test(script);
  }
}
