import { firstString, isPush } from "./resp.ts";

/** A command that was sent to Redis and is not fully answered. */
export interface Unanswered {
  command: string[];
  /**
   * Frames that are still to come: 1, but SUBSCRIBE and similar commands are acknowledged once for
   * each channel.
   */
  frames: number;
  /** Replaces the reply: the client does not see it. */
  swallow: (() => void) | undefined;
}

const SUBSCRIBES = new Set(["subscribe", "psubscribe", "ssubscribe"]);
const UNSUBSCRIBES = new Set(["unsubscribe", "punsubscribe", "sunsubscribe"]);
const MESSAGES = new Set(["message", "pmessage", "smessage"]);

/** Pairs the n-th reply of a connection with its n-th command, in RESP2 and RESP3. */
export class ReplyPairing {
  #unanswered: Unanswered[] = [];
  #isSubscriber = false;
  #speaksResp3 = false;

  /** Has the connection ever sent a SUBSCRIBE? */
  get isSubscriber(): boolean {
    return this.#isSubscriber;
  }

  get isEmpty(): boolean {
    return this.#unanswered.length === 0;
  }

  sent(command: string[], swallow?: () => void): void {
    const [name = "", ...args] = command;
    if (SUBSCRIBES.has(name)) this.#isSubscriber = true;
    if (name === "hello" && args[0] !== undefined) this.#speaksResp3 = args[0] === "3";
    const isAcknowledged = SUBSCRIBES.has(name) || UNSUBSCRIBES.has(name);
    this.#unanswered.push({ command, frames: isAcknowledged ? Math.max(1, args.length) : 1, swallow });
  }

  /** The command that a frame answers; messages and other pushes answer none. */
  answeredBy(frame: Buffer): Unanswered | undefined {
    const head = this.#unanswered[0];
    const kind = this.#pubSubKind(frame);
    if (head === undefined || (kind !== undefined && kind !== head.command[0])) return undefined;
    // One error replaces all acknowledgements of a refused SUBSCRIBE.
    head.frames = kind === undefined ? 0 : head.frames - 1;
    if (head.frames === 0) this.#unanswered.shift();
    return head;
  }

  /** No more replies will come. */
  clear(): void {
    this.#unanswered = [];
  }

  #pubSubKind(frame: Buffer): string | undefined {
    if (isPush(frame)) return firstString(frame) ?? "push";
    // RESP2 has no pushes: on a subscribed connection an array's first word decides.
    if (this.#speaksResp3 || !this.#isSubscriber) return undefined;
    const kind = firstString(frame) ?? "";
    return SUBSCRIBES.has(kind) || UNSUBSCRIBES.has(kind) || MESSAGES.has(kind) ? kind : undefined;
  }
}
