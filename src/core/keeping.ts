import type { Events } from "../api/events.ts";
import type { Callback } from "../redis/call.ts";
import type { ReleaseAnswer } from "../redis/replies.ts";
import type { Transport } from "../redis/transport.ts";
import { clocks } from "../util/clock.ts";
import type { Hold } from "./lease/hold.ts";
import { ASKED, type KeptEnd, type LingerLearner, TAKEN } from "./linger-learner.ts";
import type { LockKind } from "./lock-kind.ts";

/** How a hold stays with its process while no caller is inside, and what that has saved. */
export class Keeping {
  readonly hold: Hold;
  readonly #keeper: Keeper;
  readonly #learner: LingerLearner;
  /** Is no caller inside? Nothing was sent to Redis. */
  isIdle = false;
  /** Its hold has ended. */
  isOver = false;
  /** When it became idle, and how long that may last, on the monotonic clock. 0: never yet. */
  since = 0;
  until = 0;
  /** `since`, when it was last put at the end of the client's line. */
  keptAt = 0;
  /** How often it was taken again, and how many pairs of commands that saved. */
  uses = 0;
  saved = 0;

  constructor(keeper: Keeper, hold: Hold, learner: LingerLearner) {
    this.#keeper = keeper;
    this.hold = hold;
    this.#learner = learner;
  }

  get kind(): LockKind {
    return this.#keeper.kind;
  }

  /** No caller is inside from now on, for at most `ms`. */
  begin(mono: number, ms: number): void {
    this.isIdle = true;
    this.since = mono;
    this.until = mono + ms;
    this.#learner.stats.kept++;
  }

  /** A caller is inside again, or will be. `asks`: after a command. */
  taken(asks: boolean): void {
    if (!this.isIdle) return;
    const { stats } = this.#learner;
    this.isIdle = false;
    stats.kept--;
    if (!asks) stats.takenAgain++;
    this.uses++;
    this.saved += asks ? ASKED : TAKEN;
  }

  /** The hold ends. Returns how. */
  end(): KeptEnd {
    const { hold, isIdle, since, until } = this;
    const isLapsed = isIdle && clocks.mono.now() >= until;
    if (isIdle) this.#learner.stats.kept--;
    this.isIdle = false;
    this.isOver = true;
    // If messages may have been missed, no process has reported that it wants the lock.
    if (hold.recalledAt === null) return isLapsed ? "lapsed" : "given up";
    return since > 0 ? "recalled" : "wanted";
  }

  /** Another process wants it, and its release was sent. */
  tellRecalled({ commands, events }: { readonly commands: Transport; readonly events: Events }): void {
    if (!events.hears("recall")) return;
    // RACE: a listener that blocks the event loop would delay the release that others wait for.
    commands.flush();
    const { hold, kind, since, uses } = this;
    const idle = clocks.mono.now() - since;
    events.tell("recall", { name: hold.name, kind: kind.eventKind, idle, uses });
  }

  /** It ends while no caller is inside. The code that calls this sends its release. */
  takeLeave(): Callback<ReleaseAnswer> {
    return this.#keeper.takeLeave();
  }
}

/** What may keep a hold. */
interface Keeper {
  readonly kind: LockKind;
  takeLeave(): Callback<ReleaseAnswer>;
}
