import { HoldIds } from "../hold-ids.ts";
import { Hold } from "../lease/hold.ts";
import { plain } from "../redis/call.ts";
import type { Commands } from "../redis/commands.ts";
import { codes, handoffLua as lua } from "../redis/lua.generated.ts";
import type { Replication } from "../redis/replication.ts";
import { type AttemptAnswer, decodeRelease, type ReleaseAnswer } from "../redis/replies.ts";
import { clocks } from "../util/clock.ts";
import type { Ask, Leavable, LockKind, Told } from "../waiting/lock-kind.ts";
import { ending, HandoffLock } from "./handoff.ts";

/** So much later than the client reckons, in ms, the time of a hold may be over by its token, which is the server's time. */
const TOKEN_AHEAD = 1_000;

/**
 * `lock` and `fairLock` for calls with `minHold`: a hold that is given back before its time leaves the lock to nobody for the
 * rest. Each call has a hold of its own, as at a fair lock, so none is passed on, kept or recalled; and it is renewed before its
 * caller gets it, because a grant by message lives for the window only, and its process may crash.
 */
class MinHoldLock extends HandoffLock {
  override readonly label: "lock" | "fairLock";
  override readonly eventKind: "lock" | "fair";
  override readonly isConfirmed = true;
  /** Of holds that were asked for: how long they keep the lock at least, in ms. */
  readonly #times = new WeakMap<Leavable, number>();
  /** Of holds that are nobody's. */
  readonly #ids = new HoldIds(0);
  readonly #ending: Map<string, number>;

  constructor(commands: Commands, replication: Replication | null, isFair: boolean, window: number) {
    super(commands, replication, true, 0, window);
    this.#ending = ending.get(commands) ?? new Map();
    ending.set(commands, this.#ending);
    this.label = isFair ? "fairLock" : "lock";
    this.eventKind = isFair ? "fair" : "lock";
  }

  override get minHold(): LockKind {
    return this;
  }

  override attempt(hold: Hold, ask: Ask, told: Told<AttemptAnswer>): void {
    if (ask.minHold !== undefined) this.#times.set(hold, ask.minHold);
    super.attempt(hold, ask, told);
  }

  override release(hold: Hold, told: Told<ReleaseAnswer>): void {
    const time = this.#timeOf(hold);
    const held = clocks.mono.now() - hold.ownedAt;
    // Its time began no later in Redis than here.
    if (held >= time) {
      super.release(hold, told);
      return;
    }
    const { commands } = this;
    const { script } = this.keysOf(hold);
    const now = commands.notAfter(script, 0);
    // The token is the server's time of the grant, or a little more: unless its clock went back since an earlier token.
    const began = hold.token / 1_000;
    const from = now === 0 ? began : Math.min(began, now - held + TOKEN_AHEAD);
    const args = [
      hold.id + hold.label,
      hold.token,
      Math.ceil((from + time) * 1_000),
      this.#ids.next(hold.id.slice(0, hold.id.lastIndexOf(":"))) + hold.label,
    ];
    this.#ends(hold.id, hold.ownedAt + time);
    commands.send(lua.releaseAt, script, args, decodeAt, {
      answered: (answer) => {
        this.#ending.delete(hold.id);
        if (answer === "over") super.release(hold, told);
        else told.answered(answer);
      },
      failed: (error) => told.failed(error),
    });
  }

  /** Until its release is answered, or its time is over. */
  #ends(id: string, until: number): void {
    for (const [other, end] of this.#ending) if (end <= clocks.mono.now()) this.#ending.delete(other);
    this.#ending.set(id, until);
  }

  #timeOf(hold: Leavable): number {
    return this.#times.get(hold) ?? 0;
  }

  /** Of a hold that a caller has had: its release was not answered, or it is lost here and may live in Redis. */
  readonly former = {
    withdraw: (hold: Leavable): Promise<unknown> => {
      const isOver = !(hold instanceof Hold) || clocks.mono.now() - hold.ownedAt >= this.#timeOf(hold);
      if (isOver) return this.withdraw(hold);
      return new Promise((answered, failed) => this.release(hold, { answered, failed }));
    },
  };
}

const decodeAt = (reply: unknown): ReleaseAnswer | "over" =>
  reply === codes.HELD ? "over" : decodeRelease(plain(reply));

/** `lock`, or `fairLock`, with its kind for calls with `minHold`. */
export const handoffLock = (
  commands: Commands,
  replication: Replication | null,
  isFair: boolean,
  passes: number,
  window: number,
): HandoffLock => {
  const minHold = new MinHoldLock(commands, replication, isFair, window);
  return new HandoffLock(commands, replication, isFair, passes, window, minHold);
};
