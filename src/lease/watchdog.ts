import { CLAIM_AFTER, RENEWAL_LOOKAHEAD, RENEWALS_PER_LEASE, RENEWALS_PER_TURN } from "../defaults.ts";
import { LockUnavailableError } from "../errors.ts";
import type { Events } from "../events.ts";
import type { RenewAnswer } from "../redis/replies.ts";
import { type Instant, now } from "../util/clock.ts";
import { CallTimer, Timers } from "../util/timers.ts";
import { watchHandle } from "./forgotten.ts";
import type { Hold } from "./hold.ts";
import type { Renewer } from "./renewer.ts";
import { type SharedLease, told } from "./shared-lease.ts";

interface Watched {
  readonly lease: SharedLease;
  readonly renewer: Renewer;
  /** When to renew, on the monotonic clock; Infinity for leases without watchdog and while a renewal is under way. */
  due: number;
}

/**
 * Keeps live leases alive and ends dead ones, with one alarm for all of them.
 *
 * A renewal has four answers: renewed; gone and taken, which end the lease at once; and unknown, when Redis did not
 * answer: it is tried again, well before the deadline. The deadline itself needs no answer: when it passes, the lease
 * is lost whether or not Redis can be reached.
 */
export class Watchdog {
  readonly #watched = new Map<SharedLease, Watched>();
  readonly #timers = new Timers(false);
  readonly #events: Events;
  /** Renewals that are due and wait for a turn of the event loop, the most urgent one last. `end`: when the first lease ends. */
  readonly #unsent: {
    readonly renewer: Renewer;
    readonly batch: readonly Watched[];
    readonly end: number;
  }[] = [];
  #sending: NodeJS.Immediate | undefined;
  readonly #alarm = new CallTimer(() => this.#tick());

  constructor(events: Events) {
    this.#events = events;
  }

  get size(): number {
    return this.#watched.size;
  }

  leases(): Iterable<SharedLease> {
    return this.#watched.keys();
  }

  /** What a hold was given for; undefined: it is over. */
  leaseOf(hold: Hold): SharedLease | undefined {
    for (const lease of this.#watched.keys()) if (lease.hold === hold) return lease;
    return undefined;
  }

  watch(lease: SharedLease, renewer: Renewer): void {
    const { hold, terms, since } = lease;
    const left = lease.left(since);
    // A grant by message has only the window: raised once it is clear that this is no short critical section.
    const first =
      hold.ttl < terms.lease
        ? Math.min(CLAIM_AFTER, left / RENEWALS_PER_LEASE)
        : // Also where more is left than the lease: a renewal is how a loss is noticed.
          Math.min(left, terms.lease) - keep(terms.lease);
    const watched = {
      lease,
      renewer,
      due: terms.watchdog ? since.mono + Math.max(0, first) : Number.POSITIVE_INFINITY,
    };
    this.#watched.set(lease, watched);
    this.#wakeAt(Math.min(watched.due, since.mono + left));
  }

  unwatch(lease: SharedLease): void {
    this.#watched.delete(lease);
  }

  close(): void {
    this.#timers.close();
    clearImmediate(this.#sending);
    this.#unsent.length = 0;
  }

  #wakeAt(at: number): void {
    if (this.#alarm.index < 0 || at < this.#alarm.at) this.#timers.set(this.#alarm, at);
  }

  #tick(): void {
    const at = now();
    const due: Watched[] = [];
    const soon: Watched[] = [];
    for (const watched of this.#watched.values()) {
      if (!watched.lease.expire(at)) continue;
      if (watched.due <= at.mono) due.push(watched);
      else if (
        watched.lease.hold.ttl >= watched.lease.terms.lease &&
        watched.due <= at.mono + period(watched) * RENEWAL_LOOKAHEAD
      )
        soon.push(watched);
    }
    if (due.length > 0) this.#renew([...due, ...soon], at);
    let next = Number.POSITIVE_INFINITY;
    for (const { lease, due: dueAt } of this.#watched.values())
      next = Math.min(next, dueAt, at.mono + lease.left(at));
    this.#wakeAt(next);
  }

  #renew(list: readonly Watched[], at: Instant): void {
    const groups = new Map<Renewer, Watched[]>();
    for (const watched of list) {
      // Once for each, however long it waits for its turn to be sent.
      watched.due = Number.POSITIVE_INFINITY;
      const group = groups.get(watched.renewer);
      if (group) group.push(watched);
      else groups.set(watched.renewer, [watched]);
    }
    for (const [renewer, group] of groups) {
      for (let i = 0; i < group.length; i += renewer.batch) {
        const batch = group.slice(i, i + renewer.batch);
        this.#unsent.push({ renewer, batch, end: at.mono + shortest(batch, at) });
      }
    }
    // What ends soonest goes first: a short lease must not wait behind thousands of long ones.
    this.#unsent.sort((one, other) => other.end - one.end);
    // What waits already goes on by itself.
    if (!this.#sending) this.#send();
  }

  /**
   * Sends what is due, without waiting for answers: a node that does not answer holds up no other renewal. Not all of it in
   * one turn of the event loop: with tens of thousands of leases nothing else in this process, and no command of its
   * callers, would get through meanwhile. Two thirds of a lease are left for it.
   */
  readonly #send = (): void => {
    this.#sending = undefined;
    let sent = 0;
    while (sent < RENEWALS_PER_TURN) {
      const next = this.#unsent.pop();
      if (!next) return;
      // Released, lost, or begun anew meanwhile.
      const batch = next.batch.filter((watched) => this.#watched.get(watched.lease) === watched);
      sent += batch.length;
      if (batch.length > 0) void this.#batch(next.renewer, batch);
    }
    if (this.#unsent.length > 0) this.#sending = setImmediate(this.#send);
  };

  async #batch(renewer: Renewer, batch: readonly Watched[]): Promise<void> {
    const sent = now();
    for (const { lease } of batch) lease.hold.asks(lease.terms.lease);
    const holds = batch.map(({ lease }) => ({
      name: lease.name,
      id: lease.hold.id,
      ttl: lease.terms.lease,
      record: lease.hold.record,
    }));
    let answers: RenewAnswer[];
    try {
      answers = await renewer.renew(holds, Math.max(shortest(batch, sent) / RENEWALS_PER_LEASE, CLAIM_AFTER));
    } catch (error) {
      this.#events.report(
        new LockUnavailableError(batch.length === 1 ? (batch[0]?.lease.name ?? null) : null, RENEWAL, error),
      );
      for (const watched of batch) this.#later(watched);
      return;
    }
    for (const [i, watched] of batch.entries()) {
      const answer = answers[i];
      if (answer) this.#answered(watched, answer, sent);
    }
  }

  #answered(watched: Watched, answer: RenewAnswer, sent: ReturnType<typeof now>): void {
    const { lease } = watched;
    // Released, passed on or lost while the renewal was under way: its answer is for a lease of the past.
    if (!this.#watched.has(lease)) return;
    // A lease whose deadline has passed is not revived: the answer may be for a later grant of the same hold.
    if (!lease.expire()) return;
    if (answer.is !== "renewed") {
      lease.lose(answer.is);
      return;
    }
    lease.hold.renewed(sent, answer);
    const handle = lease.takeHandle();
    if (handle) watchHandle(handle, lease, this.#events);
    watched.due = sent.mono + period(watched);
    this.#wakeAt(watched.due);
    if (this.#events.hears("renew")) this.#events.tell("renew", { ...told(lease), remaining: lease.left() });
  }

  /** Unknown: again after a tenth of what is left, so that several tries fit in before the deadline. */
  #later(watched: Watched): void {
    if (!this.#watched.has(watched.lease)) return;
    const at = now();
    watched.due = at.mono + Math.min(Math.max(watched.lease.left(at) / 10, 10), period(watched));
    this.#wakeAt(watched.due);
  }
}

const RENEWAL = "a renewal failed and is tried again until the lease ends";

/** What is left of a lease when it is time to renew it. */
const keep = (lease: number): number => lease - lease / RENEWALS_PER_LEASE;

/** ms until the first of them ends. */
const shortest = (batch: readonly Watched[], at: Instant): number =>
  Math.min(...batch.map(({ lease }) => lease.left(at)));

const period = ({ lease }: Watched): number => lease.terms.lease / RENEWALS_PER_LEASE;
