import type { Grant, Hold } from "../lease/hold.ts";
import { decodeMessage } from "../scripts/messages.ts";

/** Who is told of a hold's messages. */
export interface Expecting {
  /** False: the hold is not wanted any more, so it must be left (R3). */
  granted(id: string, grant: Grant): boolean;
  revoked(id: string): void;
}

/** Brings the messages of a client's own channels to whoever has the hold that they name. */
export class Mailbox {
  readonly #expected = new Map<string, Expecting>();
  readonly #unclaimed: (hold: string, key: string, ttl: number) => void;

  /**
   * `unclaimed`: a lock was granted to a hold that nobody here waits with any more. Its id, the key of the lock, and for how many
   * ms it is granted.
   */
  constructor(unclaimed: (hold: string, key: string, ttl: number) => void) {
    this.#unclaimed = unclaimed;
  }

  expect(hold: Hold, expecting: Expecting): void {
    this.#expected.set(hold.id, expecting);
  }

  forget(hold: Hold): void {
    this.#expected.delete(hold.id);
  }

  /** Does a turn or a bundle have this hold? */
  isExpected(hold: Hold): boolean {
    return this.#expected.has(hold.id);
  }

  readonly read = (text: string): void => {
    const message = decodeMessage(text);
    if (!message) return;
    const expected = this.#expected.get(message.hold);
    if (message.is === "revoked") expected?.revoked(message.hold);
    else if (!expected?.granted(message.hold, message))
      this.#unclaimed(message.hold, message.key, message.ttl);
  };
}
