import type { LockClient } from "../../index.ts";
import { orAbort } from "../../util/abort.ts";

/** Two callers that take two locks in opposite order, until this is ended. */
export class Deadlock {
  /** Resolves when both have ended: also if their processes lose the locks. */
  readonly over: Promise<unknown>;
  readonly #end = new AbortController();

  constructor(one: LockClient, other: LockClient) {
    const { signal } = this.#end;
    let missing = 2;
    let meet = (): void => {};
    const both = new Promise<void>((resolve) => {
      meet = resolve;
    });
    const transfer = (locks: LockClient, from: string, to: string) =>
      locks
        .lock(from)
        .withLock({ signal, wait: 10_000, label: "transfer" }, async () => {
          if (--missing === 0) meet();
          await orAbort(signal, both);
          await locks.lock(to).withLock({ signal, label: "transfer" }, () => {});
        })
        // One that cannot begin must not leave the other one waiting.
        .catch(() => this.#end.abort());
    this.over = Promise.all([
      transfer(one, "account:1", "account:2"),
      transfer(other, "account:2", "account:1"),
    ]);
  }

  end(): string {
    this.#end.abort();
    return "Both callers give up, and their processes go on.";
  }
}
