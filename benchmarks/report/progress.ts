import { isTerminal, paint, print } from "../../demo/terminal.ts";
import { inMinutes, short } from "./numbers.ts";

/** One contender in one round of one scenario: what runs at a time. */
export interface Turn {
  readonly scenario: string;
  readonly contender: string;
  /** 1 for the first. */
  readonly round: number;
  readonly rounds: number;
}

const REDRAW_MS = 200;
const ERASE = "\r\x1b[2K";

/**
 * One line for the whole run, redrawn in place on a terminal; elsewhere, where nothing can be
 * redrawn, a line for each turn when it has ended. The line is redrawn by a timer too, so that a
 * contender that hangs is seen to hang.
 *
 * Call {@link Progress.clear} before anything else is printed.
 */
export class Progress {
  readonly #begun = performance.now();
  #left: number;
  #ended = 0;
  /** ms of all turns that have ended. */
  #spent = 0;
  #turn: Turn | null = null;
  #turnBegun = 0;
  #acquired = 0;
  #timer: NodeJS.Timeout | null = null;

  /** @param turns how many there will be, in all scenarios */
  constructor(turns: number) {
    this.#left = turns;
  }

  start(turn: Turn): void {
    this.#turn = turn;
    this.#turnBegun = performance.now();
    this.#acquired = 0;
    if (!isTerminal) return;
    this.#redraw();
    this.#timer ??= setInterval(() => this.#redraw(), REDRAW_MS).unref();
  }

  /** @param acquired by all processes, since the turn started */
  show(acquired: number): void {
    this.#acquired = acquired;
  }

  /** @param trouble why the turn has no result; null: it has one */
  end(trouble: string | null = null): void {
    const turn = this.#turn;
    if (turn === null) return;
    const took = performance.now() - this.#turnBegun;
    this.#turn = null;
    this.#left -= 1;
    this.#ended += 1;
    this.#spent += took;
    if (isTerminal) return;
    const outcome = trouble ?? `${describe(this.#acquired)} in ${inMinutes(took)}`;
    print(`${heading(turn)}  ${outcome}  (${this.#clock(0)})`);
  }

  /**
   * Turns that will not take place after all, such as the other rounds of a contender that cannot
   * be started.
   */
  skip(turns: number): void {
    this.#left -= turns;
  }

  /** Takes the line away, until the next turn starts. */
  clear(): void {
    if (this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
    process.stdout.write(ERASE);
  }

  #redraw(): void {
    if (this.#turn === null) return;
    const head = heading(this.#turn);
    const tail = `  ${describe(this.#acquired)}  ${this.#clock(performance.now() - this.#turnBegun)}`;
    // A line that wraps could not be erased.
    const room = Math.max(0, (process.stdout.columns ?? 80) - 1);
    const shown = head.slice(0, room);
    process.stdout.write(`${ERASE}${paint("bold", shown)}${tail.slice(0, room - shown.length)}`);
  }

  /** The rest is guessed from the mean of the turns so far, of which the current one has used some. */
  #clock(used: number): string {
    const elapsed = `${inMinutes(performance.now() - this.#begun)} elapsed`;
    if (this.#ended === 0) return elapsed;
    const mean = this.#spent / this.#ended;
    return `${elapsed}, about ${inMinutes(Math.max(0, this.#left * mean - Math.min(used, mean)))} left`;
  }
}

function heading({ scenario, contender, round, rounds }: Turn): string {
  return `${scenario}  ${contender}  round ${round}/${rounds}`;
}

function describe(acquired: number): string {
  return `${short(acquired)} acquisitions`;
}
