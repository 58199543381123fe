import { visible } from "../../util/visible.ts";
import type { Observed } from "./census.ts";

// The input of the exporters. It is checked when they begin: what they are given is called where
// locks are handed over, and in listeners of channels, whose errors end the process.

/** @throws TypeError for what is no client of `createLockClient`. */
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

/** @throws TypeError for what is no object, and for an option that is not known. */
export function checkKnown(options: unknown, known: readonly string[]): void {
  if (typeof options !== "object" || options === null) throw bad("options must be an object");
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown !== undefined) throw bad(`unknown option '${visible(unknown)}'; known are ${known.join(", ")}`);
}

/** What is observed by what. Protects the numbers from counting everything twice. */
export class Observing {
  readonly #observed = new WeakMap<object, WeakSet<Observed>>();

  /** Returns how to end it. @throws TypeError when these locks are observed by this already. */
  begin(locks: Observed, by: object, name: string): () => void {
    const all = this.#observed.get(by) ?? new WeakSet();
    if (all.has(locks)) throw bad(`this ${name} has them already, and would count everything twice`);
    this.#observed.set(by, all.add(locks));
    return () => void all.delete(locks);
  }
}

const bad = (why: string): TypeError => new TypeError(`Cannot observe the locks: ${why}`);
