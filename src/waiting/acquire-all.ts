import { CLAIM_AFTER, FIRST_REPLY, MULTI_LOCK_LEASE, OUTRUN_ROUNDS } from "../defaults.ts";
import { LockLostError, LockUnavailableError } from "../errors.ts";
import type { Caller } from "../events.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import type { Terms } from "../options.ts";
import { orAbort } from "../util/abort.ts";
import { isOurs, thrownAt } from "../util/stacks.ts";
import type { Member } from "./lock-kind.ts";
import type { Entrance, LockManager } from "./lock-manager.ts";
import { outran } from "./outrun.ts";
import { isEnough } from "./schedule.ts";

/** The lock that somebody else held when the time to wait was over. */
export interface Busy {
  readonly busy: string;
}

/**
 * Takes several locks, all or none. `members` come in an order that is the same everywhere, and nobody waits for one of
 * them while he holds a later one: so no two callers ever wait for each other.
 *
 * Locks that one command can take are tried so. What is in the way is then waited for in its turn, as by anybody, with
 * those before it held; the watchdog keeps these meanwhile. The caller's lease begins when all are held.
 *
 * Rejects as `LockManager.enter` does. What was taken in vain is given back behind the answer: a Redis that hangs must not hold
 * that up.
 */
export async function acquireAll(
  room: LockManager,
  members: readonly Member[],
  entrance: Entrance,
): Promise<readonly SharedLease[] | Busy> {
  const by = room.newCaller("multi");
  const since = performance.now();
  const gathering = new AllAcquisition(room, { ...entrance, by });
  const giveUp = (name: string, error: unknown): void => {
    gathering.giveBack();
    room.events.tellGiveUp(name, by, since, entrance.wait, error);
  };
  try {
    for (;;) {
      const busy = await gathering.take(members, entrance.terms);
      if (!busy && (await gathering.begin(members))) return gathering.taken.splice(0);
      if (busy) {
        giveUp(busy.busy, null);
        return busy;
      }
      gathering.giveBack();
    }
  } catch (error) {
    giveUp(gathering.at ?? members[0]?.name ?? "", error);
    throw isOurs(error) ? thrownAt(error, acquireAll) : error;
  }
}

class AllAcquisition {
  /** In order. */
  readonly taken: SharedLease[] = [];
  /** The lock that was waited for last, by itself. */
  at: string | null = null;
  readonly #room: LockManager;
  readonly #entrance: Entrance & { by: Caller };
  readonly #until: number;
  /** Of what is held while others are waited for. */
  readonly #meanwhile: Terms;
  /** How many times in a row the lease was over before it could begin, because its extension took longer. */
  #outruns = 0;

  constructor(room: LockManager, entrance: Entrance & { by: Caller }) {
    this.#room = room;
    this.#entrance = entrance;
    this.#until = performance.now() + entrance.wait;
    const lease = Math.max(entrance.terms.lease, MULTI_LOCK_LEASE);
    this.#meanwhile = { lease, watchdog: true, maxHold: Number.POSITIVE_INFINITY };
  }

  /** Takes these, with those before them held. Null: done; else what was busy when the time was over. */
  async take(members: readonly Member[], terms = this.#meanwhile): Promise<Busy | null> {
    const [first] = members;
    if (!first) return null;
    const { all } = first.kind;
    const count = together(members);
    if (!all || count === 1) return (await this.#enter(first)) ?? this.take(members.slice(1));
    const names = members.slice(0, count).map(({ name }) => name);
    const entrance = this.#entering(count === members.length ? terms : this.#meanwhile);
    const outcome = await this.#room.enterAll(first.kind, all, names, entrance);
    if (!("index" in outcome)) {
      this.taken.push(...outcome);
      return this.take(members.slice(count));
    }
    const { index, isHeld } = outcome;
    const busy = members[index] ?? first;
    if (isHeld && entrance.wait === 0) return { busy: busy.name };
    // Never a later one first.
    return (
      (await this.take(members.slice(0, index))) ??
      (await this.#enter(busy)) ??
      (await this.take(members.slice(index + 1)))
    );
  }

  async #enter({ kind, name, passes }: Member): Promise<Busy | null> {
    this.at = name;
    const entrance = { ...this.#entering(this.#meanwhile), passes };
    const tenure = await this.#room.enter(kind, name, entrance, (tenure) => tenure);
    if (!tenure) return { busy: name };
    this.taken.push(tenure);
    return null;
  }

  /** One time to wait for all. When it is over, what is left is tried once. */
  #entering(terms: Terms): Entrance & { by: Caller } {
    const wait = Math.max(0, this.#until - performance.now());
    const { signal, by } = this.#entrance;
    return { terms, wait, signal, by };
  }

  /** All are taken: from now on they are the caller's, for all of his lease. False: one was lost meanwhile. */
  async begin(members: readonly Member[]): Promise<boolean> {
    const { terms, signal } = this.#entrance;
    // The first may have been taken long ago: less is left than was asked for, or somebody took it away by force or deleted
    // it, which no renewal has told yet.
    const at = performance.now();
    const old = this.taken.filter(
      ({ hold, since, terms: own }) =>
        at - since.mono > CLAIM_AFTER || !isEnough(hold, terms, this.#room.window, own === terms),
    );
    const wereHeld = this.taken.every((tenure) => tenure.expire());
    if (old.length > 0) {
      const within = Math.max(this.#until - at, FIRST_REPLY);
      const extending = Promise.allSettled(old.map((tenure) => tenure.extend(terms.lease, within)));
      // What is lost is seen below.
      for (const extended of await orAbort(signal, extending))
        if (extended.status === "rejected" && !(extended.reason instanceof LockLostError))
          throw extended.reason;
    }
    const loss = this.taken.find((tenure) => !tenure.expire())?.loss;
    if (loss) {
      const isOutrun = wereHeld && loss.reason === "expired";
      const isOver = performance.now() >= this.#until;
      this.#outruns = isOutrun ? this.#outruns + 1 : 0;
      // Now and then that can happen. When it goes on, the lease is shorter than Redis takes, and more tries would end the same.
      if (isOutrun && (isOver || this.#outruns >= OUTRUN_ROUNDS))
        throw outran(loss.lockName ?? "", terms.lease, performance.now() - at);
      if (isOver) throw new LockUnavailableError(loss.lockName, "it was lost before all were held", loss);
      return false;
    }
    for (const [i, tenure] of this.taken.entries()) {
      const kind = members[i]?.kind;
      if (tenure.terms === terms || !kind) continue;
      tenure.begin(terms);
      this.#room.watchdog.watch(tenure, kind);
    }
    return true;
  }

  giveBack(): void {
    for (const tenure of this.taken.splice(0))
      tenure.leave().catch((error: unknown) => {
        if (!(error instanceof LockLostError)) this.#room.events.report(error);
      });
  }
}

/** How many of the first of them one command can take. */
function together(members: readonly Member[]): number {
  const place = ({ kind, name }: Member): string | null =>
    kind.all ? `${kind.protocol} ${kind.all.place(name)}` : null;
  const [first] = members;
  const common = first ? place(first) : null;
  if (common === null) return 1;
  const other = members.findIndex((member) => place(member) !== common);
  return other < 0 ? members.length : other;
}
