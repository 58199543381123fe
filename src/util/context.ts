import { AsyncResource } from "node:async_hooks";

/**
 * The asynchronous context in which it was created. Code runs in it later, any number of times, and
 * sees the `AsyncLocalStorage` stores of that moment.
 *
 * RACE: on Node.js 20 and 22 the stores are fields of the running resource. On a resource that
 * several runs share, the store of an `als.run` in one listener would be seen by all that this
 * listener makes run, and one of `als.enterWith` by every later run. So each run has a resource of
 * its own, and no code runs in the one that is kept.
 */
export class Context {
  readonly #kept = resource();

  /** A context without any stores, wherever it is created. */
  static empty(): Context {
    const context = new Context();
    // The application may load this module within a request, such as by `await import()`. Node.js
    // has no other way to leave the stores of others.
    for (const field of Object.getOwnPropertySymbols(context.#kept))
      if (STORES.includes(field.description)) Reflect.deleteProperty(context.#kept, field);
    return context;
  }

  run<T>(work: () => T): T {
    const own = this.#kept.runInAsyncScope(resource);
    try {
      return own.runInAsyncScope(work);
    } finally {
      // Trackers of asynchronous contexts can drop it.
      own.emitDestroy();
    }
  }

  /** No code runs in it any more. */
  end(): void {
    this.#kept.emitDestroy();
  }
}

/** The fields of a resource that have stores: one for each storage, or one for all of them. */
const STORES: readonly (string | undefined)[] = ["kResourceStore", "context_frame"];

const MANUAL = { requireManualDestroy: true };

const resource = (): AsyncResource => new AsyncResource("Holdfast", MANUAL);
