import type { Grant, Hold } from "../lease/hold.ts";
import { decodeMessage } from "../redis/messages.ts";

/** What is told of a hold's messages. */
export interface Expecting {
  /** False: the hold is not wanted any more, so it must be left (R3). */
  granted(id: string, grant: Grant): boolean;
  /** `by`: the label of the caller that took it away; null: not told. */
  revoked(id: string, by: string | null): void;
}

/**
 * Brings the messages of a client's own channels to the turn or bundle whose hold they name.
 *
 * Everybody who may PUBLISH can write a message, and the name of a channel is no secret; the id of a hold is. So a message
 * counts only for a hold that this client made, and no other one makes the client send anything.
 */
export class GrantInbox {
  readonly #expected = new Map<string, Expecting>();
  readonly #isMade: (hold: string) => boolean;
  readonly #unclaimed: (hold: string, key: string, ttl: number) => void;

  /**
   * `isMade`: did this client make the hold with this id? `unclaimed`: a lock was granted to a hold of this client that no
   * caller here waits with any more. Its id, the key of the lock, and for how many ms it is granted.
   */
  constructor(
    isMade: (hold: string) => boolean,
    unclaimed: (hold: string, key: string, ttl: number) => void,
  ) {
    this.#isMade = isMade;
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
    if (message.is === "revoked") expected?.revoked(message.hold, message.by);
    else if (!expected?.granted(message.hold, message) && this.#isMade(message.hold))
      this.#unclaimed(message.hold, message.key, message.ttl);
  };
}
