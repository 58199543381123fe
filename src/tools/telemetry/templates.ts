import { visible } from "../../util/visible.ts";
import { warn } from "../../util/warn.ts";

/**
 * Returns what replaces a lock's name in metrics and traces. It must have few values: each is a
 * separate time series.
 */
export type NameOf = (name: string) => string;

/** How many templates each exporter keeps; all further ones count as one. */
const MOST = 200;
/** For names after the first {@link MOST}, and for those for which `nameOf` throws. */
const OTHER = "other";
const NUMBERS = /[0-9a-f]*\d[0-9a-f]*/gi;

/** `order:42` is `order`, `job-7f3a` is `job-*`. */
const beforeColon: NameOf = (name) => (name.split(":", 1)[0] ?? name).replace(NUMBERS, "*");

/** The templates of one exporter. */
export class Templates {
  readonly #nameOf: NameOf;
  /** The printed form of each, as everywhere; no two look alike. */
  readonly #known = new Map<string, string>();
  #hasWarned = false;

  constructor(nameOf: NameOf = beforeColon) {
    if (typeof nameOf !== "function")
      throw new TypeError("Cannot observe the locks: nameOf must be a function from a name to its template");
    this.#nameOf = nameOf;
  }

  /**
   * Never throws: it is called while locks are handed over, and by tools whose errors end the
   * process.
   */
  of(name: string): string {
    let template: string;
    try {
      template = `${this.#nameOf(name)}`;
    } catch (error) {
      this.#warn(`nameOf has thrown for a lock's name: ${error}`);
      return OTHER;
    }
    const known = this.#known.get(template);
    if (known !== undefined) return known;
    if (this.#known.size >= MOST) {
      this.#warn(`the names of locks have more than ${MOST} templates: give a nameOf with fewer`);
      return OTHER;
    }
    const shown = visible(template);
    this.#known.set(template, shown);
    return shown;
  }

  #warn(why: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    warn(`Locks are counted as "${OTHER}", because ${why}`, "LOCK_TEMPLATES");
  }
}
