import { visible } from "../../util/visible.ts";
import type { Observed } from "./census.ts";

// Checks the exporters' input when they begin. Their functions are later called while locks are
// handed over, and in listeners of channels, whose errors end the process.

/** @throws TypeError for anything but a client of `createLockClient`. */
export function checkLocks(locks: unknown): void {
  checkHas(locks, "the first argument", "a lock client, of createLockClient()", ["on", "off"]);
  if (typeof (locks as Observed).id !== "string") throw bad("the lock client must have an id");
}

/** @throws TypeError when it lacks one of these methods. */
export function checkHas(value: unknown, name: string, wanted: string, methods: readonly string[]): void {
  const given = value as Readonly<Record<string, unknown>> | null | undefined;
  if (!methods.every((method) => typeof given?.[method] === "function"))
    throw bad(`${name} must be ${wanted}`);
}

/** @throws TypeError for anything but an object, and for an unknown option. */
export function checkKnown(options: unknown, known: readonly string[]): void {
  if (typeof options !== "object" || options === null) throw bad("options must be an object");
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown !== undefined) throw bad(`unknown option '${visible(unknown)}'; known are ${known.join(", ")}`);
}

/** Which exporter observes which locks. Prevents double counting. */
export class Observing {
  readonly #observed = new WeakMap<object, WeakSet<Observed>>();

  /**
   * Returns a function that ends it. @throws TypeError when these locks are already observed by
   * this.
   */
  begin(locks: Observed, by: object, name: string): () => void {
    const all = this.#observed.get(by) ?? new WeakSet();
    if (all.has(locks)) throw bad(`this ${name} has them already, and would count everything twice`);
    this.#observed.set(by, all.add(locks));
    return () => void all.delete(locks);
  }
}

const bad = (why: string): TypeError => new TypeError(`Cannot observe the locks: ${why}`);
