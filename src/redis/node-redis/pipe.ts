import { HELD_BACK } from "../../defaults.ts";
import { clocks } from "../../util/clock.ts";
import { setImmediate } from "../../util/real-timers.ts";
import { type Client, isReply, PLAIN, RAW } from "./client.ts";
import type { Sending } from "./sending.ts";

/**
 * The unanswered scripts of a link, in order. Each is given to a client that is ready, and waits
 * here until there is one.
 *
 * RACE: node-redis writes commands that it was given before it is ready together with its
 * handshake, before that is answered. If AUTH or SELECT is refused, a lock would be taken by
 * another user, or in another database.
 *
 * When its connection is lost, node-redis rejects the commands that it had written, and they are
 * sent again here, in order. It keeps the commands that it had not written, and writes them itself,
 * possibly earlier.
 */
export class Pipe {
  readonly #all = new Set<Sending>();
  readonly #route: (sending: Sending) => Client | null;
  readonly #replied: (sending: Sending, error: Error) => boolean;
  #heldUntil = Number.NEGATIVE_INFINITY;
  #isScheduled = false;
  /** When the first of the unwritten scripts was sent. */
  #since = 0;
  /** Called when no script is left. */
  onEmpty: () => void = () => {};

  /**
   * `route`: the client that may have it now. `replied`: Redis replied an error; true: it waits for
   * another client, false: that is its answer.
   */
  constructor(
    route: (sending: Sending) => Client | null,
    replied: (sending: Sending, error: Error) => boolean = () => false,
  ) {
    this.#route = route;
    this.#replied = replied;
  }

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** Does any script wait for a client? */
  get isWaiting(): boolean {
    for (const { on, isOver } of this.#all) if (on === null && !isOver) return true;
    return false;
  }

  get heldUntil(): number {
    // RACE: a timer that was due before the event loop was blocked may fire after the block, and
    // before node-redis has written.
    if (this.#isScheduled) this.#noteDelay();
    return this.#heldUntil;
  }

  /** node-redis writes in the next turn of the event loop. */
  get holdsBack(): boolean {
    return this.#isScheduled;
  }

  send(sending: Sending): void {
    this.#all.add(sending);
    this.#write(sending);
  }

  /** A client is ready: writes the scripts that wait for it. */
  pump(): void {
    for (const sending of this.#all) {
      if (sending.on !== null) continue;
      if (sending.isOver) this.#drop(sending);
      else this.#write(sending);
    }
  }

  /** No client will come, or none may be waited for. */
  fail(error: Error): void {
    for (const sending of [...this.#all]) this.#refuse(sending, error);
  }

  #write(sending: Sending): void {
    const client = this.#route(sending);
    sending.isWritten = client !== null;
    sending.on = client;
    if (!client) return;
    try {
      // RACE: ASKING applies to the next command only, so no other command may come between.
      if (sending.asked) client.sendCommand(["ASKING"], PLAIN).catch(() => {});
      sending.asked = "";
      client.sendCommand(sending.command, sending.script.isForeign ? PLAIN : RAW).then(
        (reply) => {
          if (this.#drop(sending)) sending.owner.replied(sending, reply);
        },
        (error) => this.#rejected(sending, client, error),
      );
    } catch (error) {
      // RACE: a wrapped client may throw instead of rejecting, or return no promise. The call would
      // get that as its answer, and a second one after `replyTimeout`.
      this.#rejected(sending, client, error);
    }
    if (!this.#isScheduled) this.#written();
  }

  /** Records when node-redis has written: its own immediate was queued before this one. */
  #written(): void {
    this.#isScheduled = true;
    this.#since = clocks.mono.now();
    setImmediate(() => {
      this.#isScheduled = false;
      this.#noteDelay();
    });
  }

  #noteDelay(): void {
    const now = clocks.mono.now();
    if (now - this.#since > HELD_BACK) this.#heldUntil = now;
  }

  #rejected(sending: Sending, client: Client, error: unknown): void {
    if (!this.#all.has(sending)) return;
    // While the client is ready, the library has refused it: its queue is full.
    const isAgain = isReply(error) ? this.#replied(sending, error) : !client.isReady;
    if (!isAgain) this.#refuse(sending, error);
    else if (sending.isOver) this.#drop(sending);
    else {
      sending.on = null;
      sending.isWritten = false;
    }
  }

  #refuse(sending: Sending, error: unknown): void {
    if (this.#drop(sending)) sending.owner.refused(sending, error);
  }

  #drop(sending: Sending): boolean {
    if (!this.#all.delete(sending)) return false;
    if (this.#all.size === 0) this.onEmpty();
    return true;
  }
}
