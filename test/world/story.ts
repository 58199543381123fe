import type { Time } from "./time.ts";

/** What happened in a run, as lines; their hash says whether another run was the same. */
export class Story {
  readonly #time: Time;
  readonly lines: string[] = [];
  /** Why the run is wrong. */
  failure: string | null = null;
  #hash = 0;
  readonly #isTold: boolean;

  /** `isTold`: keeps the lines. */
  constructor(time: Time, isTold: boolean) {
    this.#time = time;
    this.#isTold = isTold;
  }

  /** `who`: "process 2", "Redis", "network", "check". */
  tell(who: string, what: string): void {
    const line = `${this.#time.now.toFixed(3).padStart(11)}  ${who.padEnd(10)} ${what}`;
    for (let i = 0; i < line.length; i++) this.#hash = (Math.imul(this.#hash, 31) + line.charCodeAt(i)) | 0;
    if (this.#isTold) this.lines.push(line);
  }

  /** Only the first failure counts: what follows may be its consequence. */
  fail(why: string): void {
    this.failure ??= `at ${this.#time.now.toFixed(3)} ms: ${why}`;
    this.tell("check", `FAILED: ${why}`);
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, "0");
  }
}
