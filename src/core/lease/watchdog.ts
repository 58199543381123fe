import { POINTS, stalled } from "../../api/channels.ts";
import { LockUnavailableError } from "../../api/errors.ts";
import { type Events, ofHolder } from "../../api/events.ts";
import { CLAIM_AFTER, RENEWAL_LOOKAHEAD, RENEWALS_PER_LEASE, RENEWALS_PER_TURN } from "../../defaults.ts";
import type { RenewAnswer } from "../../redis/replies.ts";
import { clocks, type Instant, now } from "../../util/clock.ts";
import { detached } from "../../util/detached.ts";
import { LinkedList } from "../../util/linked-list.ts";
import { clearImmediate, setImmediate } from "../../util/real-timers.ts";
import { CallTimer, Timers } from "../../util/timers.ts";
import { watchHandle } from "./collected-handles.ts";
import type { Hold } from "./hold.ts";
import { batches, type Renewer, renewAll } from "./renewer.ts";
import type { SharedLease } from "./shared-lease.ts";

/**
 * Renews live leases and ends dead ones, with one alarm for all of them.
 *
 * A renewal has four answers: renewed; gone and taken, which end the lease at once; and unknown,
 * when Redis did not answer: it is retried, well before the deadline. The deadline itself needs no
 * answer: after it the lease is lost, whether or not Redis can be reached.
 */
export class Watchdog {
  /** The leases that it watches. */
  readonly leases = new LinkedList<SharedLease>();
  readonly timers = new Timers(false);
  readonly #events: Events;
  /**
   * Renewals that are due and wait for a turn of the event loop, the most urgent one last. `end`:
   * when the batch's first lease ends.
   */
  readonly #unsent: {
    readonly renewer: Renewer;
    readonly batch: readonly SharedLease[];
    readonly end: number;
  }[] = [];
  #sending: NodeJS.Immediate | undefined;
  readonly #alarm = new CallTimer((at) => this.#tick(at));

  constructor(events: Events) {
    this.#events = events;
  }

  /** The lease of a hold; undefined: it is over. */
  leaseOf(hold: Hold): SharedLease | undefined {
    for (const lease of this.leases) if (lease.hold === hold) return lease;
    return undefined;
  }

  /** A lease has begun, or restarts. */
  watch(lease: SharedLease, wall = clocks.wall.now()): void {
    const { hold, terms, since } = lease;
    const left = lease.left(since, wall);
    // A lock granted by message has only the window: raise it once this is clearly no short
    // critical section.
    const first =
      hold.ttl < terms.lease
        ? Math.min(CLAIM_AFTER, left / RENEWALS_PER_LEASE)
        : // Even if more time is left than the lease: a renewal also detects a loss.
          Math.min(left, terms.lease) - terms.lease + terms.lease / RENEWALS_PER_LEASE;
    lease.due = terms.watchdog ? since + Math.max(0, first) : Number.POSITIVE_INFINITY;
    this.leases.add(lease);
    const at = Math.min(lease.due, since + left);
    if (at < this.#alarm.at) this.timers.set(this.#alarm, at);
  }

  close(): void {
    this.timers.close();
    clearImmediate(this.#sending);
    this.#unsent.length = 0;
  }

  #tick(at: number): void {
    const { mono, wall } = now();
    if (stalled.hasSubscribers) this.#tellStall(mono - at);
    const due: SharedLease[] = [];
    const soon: SharedLease[] = [];
    // RACE: the end of one may end others.
    for (const lease of [...this.leases]) {
      if (!lease.expire(mono, wall)) continue;
      const isRaised = lease.hold.ttl >= lease.terms.lease;
      if (lease.due <= mono) due.push(lease);
      else if (isRaised && lease.due <= mono + period(lease) * RENEWAL_LOOKAHEAD) soon.push(lease);
    }
    if (due.length > 0) this.#renew([...due, ...soon], mono);
    let next = Number.POSITIVE_INFINITY;
    for (const lease of this.leases) next = Math.min(next, lease.due, mono + lease.left(mono, wall));
    this.timers.set(this.#alarm, next);
  }

  /**
   * The alarm rang `late` ms late: nothing else could run in this process meanwhile. Reported
   * before its consequences.
   */
  #tellStall(late: number): void {
    let leases = 0;
    for (const { hold, terms } of this.leases)
      if (late > Math.min(terms.lease, hold.ttl) / RENEWALS_PER_LEASE) leases++;
    if (leases > 0) detached(() => stalled.publish({ client: this.#events.client, late, leases }));
  }

  #renew(list: readonly SharedLease[], at: number): void {
    const holds = new Set<Hold>();
    const wanted: SharedLease[] = [];
    for (const lease of list) {
      // One of the users that share a hold renews it for all; the renewals of the others are
      // postponed.
      if (holds.has(lease.hold)) {
        lease.due = at + Math.min(period(lease), lease.left() / RENEWALS_PER_LEASE);
        continue;
      }
      holds.add(lease.hold);
      // Renewed once, however long it waits to be sent.
      lease.due = Number.POSITIVE_INFINITY;
      wanted.push(lease);
    }
    for (const [renewer, batch] of batches(wanted, ({ owner }) => owner.kind))
      this.#unsent.push({ renewer, batch, end: at + shortest(batch) });
    // The soonest end goes first: a short lease must not wait for thousands of long ones.
    this.#unsent.sort((one, other) => other.end - one.end);
    // Batches already waiting go on by themselves.
    if (!this.#sending) this.#send();
  }

  /**
   * Sends what is due, without waiting for answers: a node that does not answer delays no other
   * renewal. Not all in one turn of the event loop: with tens of thousands of leases, nothing else
   * in this process would run meanwhile, not even its callers' commands. Two thirds of a lease are
   * left for it.
   */
  readonly #send = (): void => {
    this.#sending = undefined;
    let sent = 0;
    while (sent < RENEWALS_PER_TURN) {
      const next = this.#unsent.pop();
      if (!next) return;
      // Some were released, lost, or restarted meanwhile.
      const batch = next.batch.filter(
        (lease) => this.#isWanted(lease) && lease.due === Number.POSITIVE_INFINITY,
      );
      sent += batch.length;
      if (batch.length > 0) void this.#batch(next.renewer, batch);
    }
    if (this.#unsent.length > 0) this.#sending = setImmediate(this.#send);
  };

  async #batch(renewer: Renewer, batch: readonly SharedLease[]): Promise<void> {
    const asked = batch.map(({ hold, terms }) => ({ hold, ttl: terms.lease, flag: null }));
    const timeout = Math.max(shortest(batch) / RENEWALS_PER_LEASE, CLAIM_AFTER);
    let renewed: Awaited<ReturnType<typeof renewAll>>;
    try {
      renewed = await renewAll(renewer, asked, timeout);
    } catch (error) {
      // RACE: a lease was released or lost while its renewal was under way. A failed renewal then
      // concerns no caller, and is not reported.
      const left = batch.filter((lease) => this.leases.has(lease));
      const [first] = left;
      if (!first) return;
      const name = left.length === 1 ? first.name : null;
      const failure = new LockUnavailableError(name, RENEWAL, error, first.noun);
      // Unknown: retry after a tenth of the time left, so that several tries fit in before the
      // deadline.
      for (const lease of left)
        this.#dueIn(lease, clocks.mono.now(), Math.min(Math.max(lease.left() / 10, 10), period(lease)));
      this.#events.report(failure);
      for (const lease of left) this.#tellFailure(lease, failure);
      return;
    }
    for (const [i, lease] of batch.entries()) {
      const answer = renewed.answers[i];
      if (answer) this.#answered(lease, answer, renewed.sent);
    }
  }

  #tellFailure(lease: SharedLease, error: LockUnavailableError): void {
    const { client } = this.#events;
    if (!POINTS.renew.hasSubscribers || !this.leases.has(lease)) return;
    const told = { client, ...ofHolder(lease), remaining: lease.left(), error };
    detached(() => POINTS.renew.publish(told));
  }

  #answered(lease: SharedLease, answer: RenewAnswer, sent: Instant): void {
    // A lease whose deadline has passed is not revived: the answer may be for a later grant of the same hold.
    lease.expire();
    // RACE: the lock was handed on locally while the renewal was under way. The answer is about the
    // hold, and so about the caller that is inside now.
    lease.owner.renewed(lease, sent, answer);
    // Released, handed on locally or lost.
    if (!this.leases.has(lease)) return;
    const { handle } = lease;
    if (handle) {
      lease.handle = null;
      watchHandle(handle, lease, this.#events);
    }
    this.#dueIn(lease, sent.mono, period(lease));
    if (this.#events.hears("renew"))
      this.#events.tell("renew", { ...ofHolder(lease), remaining: lease.left() });
  }

  /**
   * Its renewal was answered, or failed: schedules the next one. A lease that was restarted
   * meanwhile may be due earlier, or never.
   */
  #dueIn(lease: SharedLease, from: number, ms: number): void {
    if (!this.#isWanted(lease)) return;
    lease.due = Math.min(lease.due, from + ms);
    if (lease.due < this.#alarm.at) this.timers.set(this.#alarm, lease.due);
  }

  #isWanted(lease: SharedLease): boolean {
    return lease.terms.watchdog && this.leases.has(lease);
  }
}

const RENEWAL = "a renewal, which is tried again until the lease ends, failed";

/** ms until the first of these leases ends. */
const shortest = (batch: readonly SharedLease[]): number => Math.min(...batch.map((lease) => lease.left()));

const period = ({ terms }: SharedLease): number => terms.lease / RENEWALS_PER_LEASE;
