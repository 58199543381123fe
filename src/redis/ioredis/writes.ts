import type { Writable } from "node:stream";
import { HELD_BACK } from "../../defaults.ts";
import { clocks } from "../../util/clock.ts";
import { isEnding } from "../../util/process-end.ts";
import { nextTick, setImmediate } from "../../util/real-timers.ts";

/** Streams with unwritten commands, and since when there are any. */
export const corked: Writable[] = [];
let since = 0;
let until = Number.NEGATIVE_INFINITY;
/** Will they be written at the end of this drain of microtasks? */
let isDue = false;

/**
 * Commands sent on a connection from here on are written by one system call, the most expensive
 * part of a command: at the end of this drain of microtasks, or before (see Writes). The
 * application's commands between them are written too, in order.
 */
export function cork(stream: Writable, isLate: boolean): void {
  // RACE: an exit handler of the application that runs after ours sends this, and no later write
  // would include it.
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
    nextTick(writeNow);
  }
}

/** Writes the commands sent so far. */
export function writeNow(): void {
  isDue = false;
  if (corked.length === 0) return;
  for (const stream of corked.splice(0)) stream.uncork();
  // RACE: a caller has blocked the event loop after its call, and the next caller's command
  // triggers the write of the first one.
  const now = clocks.mono.now();
  if (now - since > HELD_BACK) until = now;
}

/**
 * When commands were last written that the application had held back, by blocking the event loop
 * after a call.
 */
export const heldUntil = (): number => until;

const RESOLVED = Promise.resolve();

/**
 * Decides when the commands of a connection are written. The replies of one read lead to as many
 * commands, which are written together when the last of them is sent. A command that no reply has
 * led to is written at once. RACE: a caller that blocks its event loop right after a call would
 * hold back its own command, or a release that others wait for. If fewer commands follow than
 * replies came, the end of the drain writes them.
 */
export class Writes {
  /**
   * Replies of the last read whose callers may still send a command. Commands are held back while
   * more than one is expected.
   */
  expected = 0;
  readonly #expectNothing = (): void => {
    this.expected = 0;
  };
  /** From a microtask, so that it runs after the microtasks in which the callers continue. */
  readonly #drained = (): void => nextTick(this.#expectNothing);

  /** ioredis has read a reply of an unanswered call. Another one may come with it, or already has. */
  replied(): void {
    // `queueMicrotask` of Node.js makes an asynchronous resource for each call.
    if (this.expected++ === 0) RESOLVED.then(this.#drained);
  }

  /** A command that must not wait was sent, and some are held back or expected. */
  sent(): void {
    if (this.expected > 0) this.expected--;
    if (this.expected === 0) writeNow();
  }
}
