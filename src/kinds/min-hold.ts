import { CLOCK_DRIFT } from "../defaults.ts";
import { HoldIds } from "../hold-ids.ts";
import { Hold } from "../lease/hold.ts";
import { plain } from "../redis/call.ts";
import type { Commands } from "../redis/commands.ts";
import { handoffLua as lua } from "../redis/lua.generated.ts";
import type { Replication } from "../redis/replication.ts";
import { type AttemptAnswer, decodeRelease, type ReleaseAnswer } from "../redis/replies.ts";
import type { Script } from "../redis/script.ts";
import { clocks } from "../util/clock.ts";
import type { Ask, Leavable, LockKind, Told } from "../waiting/lock-kind.ts";
import { ending, HandoffLock } from "./handoff.ts";

const released = (reply: unknown): ReleaseAnswer => decodeRelease(plain(reply));

const whole: Script = { ...lua.releaseAt, isWhole: true };

/** How many releases may be unanswered before those that need no note any more are looked for. */
const FEW = 64;

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
  /** With so many of them, those whose time is over are looked for. */
  #most = FEW;
  /** In which connection the script of a release before the time was sent as text. */
  #toldIn = -1;

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
    const end = this.#endOf(hold);
    const left = end - clocks.mono.now();
    if (left <= 0) {
      super.release(hold, told);
      return;
    }
    const { commands } = this;
    // Its end is told by two clocks, and the earlier one counts. The token is the server's time of the grant: so a command that
    // comes late does not add its delay. But it may be ahead of that clock by any time, and our own clock never is: that was
    // looked at behind the grant, so what it says is left is never too little.
    // RACE: no third clock, what the server's time was last known to be: an answer that was read late, because this process stood
    // still, says that it is earlier than it is, and the lock would be free before its time.
    const args = [
      hold.id + hold.label,
      hold.token,
      hold.token + this.#timeOf(hold) * 1_000,
      this.#ids.next(hold.id.slice(0, hold.id.lastIndexOf(":"))) + hold.label,
      Math.ceil(left * (1 - CLOCK_DRIFT)),
    ];
    this.#ends(hold.id, end);
    // RACE: the process exits behind its unlock, and reads no answer which says that the server does not know the script. So the
    // first one goes as text, and those behind it find it there.
    const script = this.#toldIn === commands.epoch ? lua.releaseAt : whole;
    this.#toldIn = commands.epoch;
    commands.send(script, this.keysOf(hold).script, args, released, {
      answered: (answer) => {
        this.#ending.delete(hold.id);
        told.answered(answer);
      },
      failed: (error) => told.failed(error),
    });
  }

  /** Until its release is answered, or its time is over. */
  #ends(id: string, until: number): void {
    // Not each time: n unlocks in one turn would look at n²/2 of them.
    if (this.#ending.size >= this.#most) {
      const now = clocks.mono.now();
      for (const [other, end] of this.#ending) if (end <= now) this.#ending.delete(other);
      this.#most = 2 * this.#ending.size + FEW;
    }
    this.#ending.set(id, until);
  }

  /**
   * When the time of a hold is over for sure, on the monotonic clock: it began no later in Redis than here, and this clock may
   * be the faster one. What ends the hold before that leaves the end to Redis.
   */
  #endOf(hold: Hold): number {
    return hold.ownedAt + this.#timeOf(hold) / (1 - CLOCK_DRIFT);
  }

  #timeOf(hold: Leavable): number {
    return this.#times.get(hold) ?? 0;
  }

  /** Of a hold that a caller has had: its release was not answered, or it is lost here and may live in Redis. */
  readonly former = {
    withdraw: (hold: Leavable): Promise<unknown> => {
      const isOver = !(hold instanceof Hold) || clocks.mono.now() >= this.#endOf(hold);
      if (isOver) return this.withdraw(hold);
      return new Promise((answered, failed) => this.release(hold, { answered, failed }));
    },
  };
}

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
