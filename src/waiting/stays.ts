import { STAY_RENEWAL, STAY_WINDOW, TURNS_TIME } from "../defaults.ts";
import { now } from "../util/clock.ts";
import { CallTimer, type Timers } from "../util/timers.ts";
import type { GrantInbox } from "./grant-inbox.ts";
import type { LockKind } from "./lock-kind.ts";
import type { Stay } from "./stay.ts";

/**
 * What all stays of a client share. Protects the next caller of each from waiting for Redis, because what Redis has said last is
 * hardly ever too old; and everything else in this process from callers that come and go without ever letting the event loop
 * turn.
 */
export class Stays {
  readonly #timers: Timers;
  readonly #inbox: GrantInbox;
  /** The longest TTL that one is renewed for, in ms. */
  readonly #window: number;
  /** In which a caller has come without asking since their last renewal was sent. */
  #used: Stay[] = [];
  readonly #alarm = new CallTimer(() => this.#renewUsed());
  /** When the first caller came in this turn of the event loop; 0: none has. */
  #busySince = 0;
  #resting: Stay[] = [];

  constructor(timers: Timers, inbox: GrantInbox, window: number) {
    this.#timers = timers;
    this.#inbox = inbox;
    this.#window = Math.min(window, STAY_WINDOW);
  }

  /** A caller comes into this stay, and nobody was asked. */
  begins(stay: Stay): void {
    if (stay.isUsed) return;
    stay.isUsed = true;
    this.#used.push(stay);
    if (this.#alarm.index < 0) this.#timers.set(this.#alarm, performance.now() + STAY_RENEWAL);
  }

  // ---- turns of the event loop

  /**
   * Have callers come and gone for so long that the event loop must turn before the next one? Each goes on in a microtask, and
   * those of many locks could go on for ever.
   */
  isTired(mono: number): boolean {
    if (this.#busySince > 0) return mono - this.#busySince >= TURNS_TIME;
    this.#busySince = mono;
    setImmediate(this.#turned);
    return false;
  }

  /** The next caller comes behind a turn of the event loop. */
  rest(stay: Stay): void {
    this.#resting.push(stay);
  }

  readonly #turned = (): void => {
    this.#busySince = 0;
    for (const stay of this.#resting.splice(0)) stay.place.rested(stay);
  };

  // ---- renewals

  /**
   * Stays that are used are renewed before what is known of them is too old. Long bodies need none: the watchdog renews those.
   */
  #renewUsed(): void {
    const { mono } = now();
    const due: Stay[] = [];
    const used = this.#used;
    this.#used = [];
    for (const stay of used) {
      if (stay.isOver) continue;
      // Half of the time at the most: it is due at the next look.
      if (mono - stay.sentAt < STAY_RENEWAL / 2) this.#used.push(stay);
      else due.push(stay);
    }
    for (const [kind, group] of byKind(due))
      for (let i = 0; i < group.length; i += kind.batch)
        void this.#renew(kind, group.slice(i, i + kind.batch));
    if (this.#used.length > 0) this.#timers.set(this.#alarm, mono + STAY_RENEWAL);
  }

  async #renew(kind: LockKind, stays: readonly Stay[]): Promise<void> {
    const sent = now();
    const renewals = stays.map((stay) => {
      const { hold } = stay;
      const { id, name, record } = hold;
      const ttl = Math.min(stay.lease, this.#window);
      hold.asks(ttl, sent.mono);
      stay.sentAt = sent.mono;
      stay.isUsed = false;
      return { id, name, ttl, record, told: this.#inbox.hears(name) ? 1 : null } as const;
    });
    try {
      const answers = await kind.renew(renewals, this.#window / 3);
      for (const [i, { place, hold }] of stays.entries()) {
        const answer = answers[i];
        if (answer) place.renewed(hold, sent, answer);
      }
    } catch {
      // Does anybody wait? Nobody has said so, and callers here do not go on for long without it. The hold ends by its deadline.
      for (const { hold } of stays) hold.want(performance.now());
    }
  }
}

function byKind(stays: readonly Stay[]): Map<LockKind, Stay[]> {
  const groups = new Map<LockKind, Stay[]>();
  for (const stay of stays) {
    const group = groups.get(stay.place.kind);
    if (group) group.push(stay);
    else groups.set(stay.place.kind, [stay]);
  }
  return groups;
}
