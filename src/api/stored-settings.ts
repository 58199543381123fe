import { duration } from "../util/duration.ts";
import { quote } from "../util/quote.ts";
import { LockError } from "./errors.ts";
import type { Events } from "./events.ts";
import type { Interval } from "./once.ts";

/** The most reports of one client. */
const MOST = 1_000;
/** ms by which a turn may last longer than its options say: the claim of one writes a ms more. */
const ROUNDING = 1_000;

/**
 * Reports settings that Redis keeps and that count in place of the ones in this code, mostly
 * because another version of the program stored them.
 *
 * RACE: two versions that run side by side ask again and again, each with its own setting. So each
 * difference is reported once, and no report is taken back.
 */
export class StoredSettings {
  readonly #events: Pick<Events, "report">;
  /** Settings with their values and names. */
  readonly #told = new Set<string>();

  constructor(events: Pick<Events, "report">) {
    this.#events = events;
  }

  /** This client sets the number itself, so no report is due. */
  setsPermits(name: string, permits: number): void {
    this.#isNew(`permits ${permits} ${name}`);
  }

  /** `setPermits()` has stored `stored` permits, and this code says `given`. */
  ofPermits(name: string, stored: number, given: number): void {
    if (!this.#isNew(`permits ${stored} ${name}`)) return;
    this.#tell(
      name,
      `Semaphore ${quote(name)} has ${stored} permits by setPermits(), and this code says ${given}: the stored number counts until the next setPermits(); give it in the code too, or give none.`,
    );
  }

  /** A run keeps its turn for `remaining` ms more. */
  ofRun(name: string, remaining: number, { every, lease }: Interval): void {
    if (remaining <= Math.max(every, lease) + ROUNDING || !this.#isNew(`run ${name}`)) return;
    this.#tell(
      name,
      `The turn of ${quote(name)} stays taken for longer than this code's options say (every ${duration(every)}, lease ${duration(lease)}): the run that is under way, or has crashed, began with others, which count until it ends; or the server's clock was set back.`,
    );
  }

  /** Is it the first time? */
  #isNew(what: string): boolean {
    if (this.#told.size >= MOST || this.#told.has(what)) return false;
    this.#told.add(what);
    return true;
  }

  #tell(name: string, message: string): void {
    this.#events.report(new LockError("SETTING_DIFFERS", name, message));
  }
}
