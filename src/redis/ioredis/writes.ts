import type { Writable } from "node:stream";
import { HELD_BACK } from "../../defaults.ts";
import { clocks } from "../../util/clock.ts";
import { isEnding } from "../../util/process-end.ts";
import { setImmediate } from "../../util/real-timers.ts";
import type { Call } from "../driver.ts";

/** Streams with commands that are not written yet, and since when there are any. */
export const corked: Writable[] = [];
let since = 0;
let until = Number.NEGATIVE_INFINITY;
/** Will they be written at the end of this drain of microtasks? */
let isDue = false;

/**
 * What is sent on a connection from here on is written by one system call, which costs more than
 * all else that a command costs: at the end of this drain of microtasks, or before, see Writes.
 * Commands of the application between ours go along, in order.
 */
export function cork(stream: Writable, isLate: boolean): void {
  // RACE: an exit handler of the application that comes after ours sends this, and no later write
  // takes it along.
  if (isEnding && !isLate) return;
  if (stream.writableCorked === 0) {
    stream.cork();
    if (corked.push(stream) === 1) {
      since = clocks.mono.now();
      if (isLate) setImmediate(writeNow);
    }
  }
  if (!isLate && !isDue) {
    isDue = true;
    process.nextTick(writeNow);
  }
}

/** Writes what was handed over so far. */
export function writeNow(): void {
  isDue = false;
  if (corked.length === 0) return;
  for (const stream of corked.splice(0)) stream.uncork();
  // RACE: a caller has blocked the event loop behind its call, and the next caller's command takes
  // the first one's along.
  const now = clocks.mono.now();
  if (now - since > HELD_BACK) until = now;
}

/**
 * When commands were last written that the application had held back, by a blocked event loop
 * behind a call.
 */
export const heldUntil = (): number => until;

/**
 * When the commands of a connection are written. The replies that one read brings lead to as many
 * commands: those are written together, when the last of them is sent. A command that no reply has
 * led to is written at once. RACE: a caller that blocks its event loop right behind a call would
 * hold back its own command, or a release that others wait for. Only where fewer commands follow
 * than replies came, the end of the drain writes them.
 */
export class Writes {
  /**
   * Replies of the last read whose callers may send a command yet. A command is held back while
   * more than one is expected.
   */
  expected = 0;
  readonly #expectNothing = (): void => {
    this.expected = 0;
  };
  /** From a microtask: what that puts off runs behind the microtasks in which the callers go on. */
  readonly #drained = (): void => process.nextTick(this.#expectNothing);

  /** ioredis has read the reply. Another one may come with it, or has. */
  replied(call: Call, reply: unknown): void {
    // With one that nothing else is awaited beside, no other reply has come, unless that was
    // counted before.
    const isCounted = !call.isOver && (this.expected > 0 || call.owner.unanswered.size > 1);
    if (isCounted && this.expected++ === 0) queueMicrotask(this.#drained);
    call.owner.replied(call, reply);
  }

  /** A command that may not wait was handed over, and some are held back or expected. */
  sent(): void {
    if (this.expected > 0) this.expected--;
    if (this.expected === 0) writeNow();
  }
}
