import { type Events, ofCall } from "../api/events.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import type { Watchdog } from "../core/lease/watchdog.ts";
import type { Callers } from "../core/port.ts";
import { selfWaitAt, selfWaiter, type Waiter } from "../core/waiter.ts";
import { WARN_AGAIN } from "../defaults.ts";
import { withoutBits } from "../redis/hold-ids.ts";
import { clocks } from "../util/clock.ts";
import { duration } from "../util/duration.ts";
import { quote } from "../util/quote.ts";
import { warn } from "../util/warn.ts";

/**
 * Warns of the most common self-made deadlock: a caller waits for a lock that its own process keeps
 * holding, in this client or another.
 */
export class SelfWait {
  readonly #watchdog: Watchdog;
  readonly #events: Events;
  readonly #ref = new WeakRef<SelfWait>(this);
  readonly #lastLooks = new WeakMap<Callers, number>();
  #lastWarning = Number.NEGATIVE_INFINITY;
  /** Both places of each reported wait for its own scope. */
  readonly #places = new Set<string>();

  constructor(watchdog: Watchdog, events: Events) {
    this.#watchdog = watchdog;
    this.#events = events;
    clients.add(this.#ref);
  }

  close(): void {
    clients.delete(this.#ref);
  }

  /** This client's lease of a lock; null: none. */
  leaseOf(protocol: string, name: string): SharedLease | null {
    for (const lease of this.#leasesOf(protocol, name)) return lease;
    return null;
  }

  *#leasesOf(protocol: string, name: string): Iterable<SharedLease> {
    for (const lease of this.#watchdog.leases)
      if (lease.name === name && lease.owner.kind.protocol === protocol && lease.held) yield lease;
  }

  /** Called periodically while callers wait in Redis; `head` is the first of them. */
  look(callers: Callers, head: Waiter): void {
    const at = clocks.mono.now();
    if (at < selfWaitAt(head) || at - (this.#lastLooks.get(callers) ?? 0) < LOOK_EVERY) return;
    const { kind, name } = callers;
    // Candidates of an election wait on purpose, even within one process. So do callers that want the
    // result of a run: a body that waits for itself does so in its scope.
    if (kind.protocol === "election" || kind.protocol === "remember") return;
    this.#lastLooks.set(callers, at);
    if (kind.unitsFreeWithout) {
      void this.#lookAmong(callers, at);
      return;
    }
    for (const ref of clients) {
      const client = ref.deref();
      if (!client) clients.delete(ref);
      const lease = client?.leaseOf(kind.protocol, name);
      const waiter = lease && selfWaiter(callers, lease);
      if (!waiter || waiter.isWarned || at < selfWaitAt(waiter)) continue;
      if (client === this) this.warn(name, waiter, "this client");
      else void this.#lookCloser(callers, waiter, lease);
    }
  }

  /**
   * Another client of this process holds a lock with this name: is it the same lock, or one on
   * another server?
   */
  async #lookCloser({ kind, name }: Callers, waiter: Waiter, { hold, owner }: SharedLease): Promise<void> {
    const inspection = await kind.holder(name).catch(() => null);
    // The hold's number alone is not enough: every client begins at 1.
    if (inspection?.holder?.id !== withoutBits(owner.kind.shownAs?.(hold) ?? hold.id)) return;
    if (!waiter.settled && !waiter.isWarned) this.warn(name, waiter, "this process");
  }

  /**
   * Several callers may hold it at once, in this process too. A caller waits for its own process
   * only if its units would not be free even after all others gave theirs back.
   */
  async #lookAmong(callers: Callers, at: number): Promise<void> {
    const { kind, name } = callers;
    const mine: SharedLease[] = [];
    for (const ref of clients) {
      const client = ref.deref();
      if (client) mine.push(...client.#leasesOf(kind.protocol, name));
    }
    for (const waiter of callers) {
      if (at < selfWaitAt(waiter)) return;
      const earlier = mine.filter(({ since }) => since <= waiter.since);
      if (earlier.length === 0 || waiter.isWarned || waiter.own?.isOwn) continue;
      const holds = earlier.map(({ hold }) => hold);
      const left = await kind.unitsFreeWithout?.(name, holds).catch(() => null);
      if (typeof left !== "number" || left >= (waiter.units ?? 1) || waiter.settled || waiter.isWarned)
        return;
      const isOwn = earlier.every((lease) => this.#watchdog.leases.has(lease));
      this.warn(name, waiter, isOwn ? "this client" : "this process");
      return;
    }
  }

  /** An event for every such caller; a process warning at most once a minute for each client. */
  warn(name: string, waiter: Waiter, heldBy: "this client" | "this process"): void {
    const at = clocks.mono.now();
    const waited = at - waiter.since;
    const { kind, call, units } = waiter;
    waiter.isWarned = true;
    if (this.#events.hears("wait"))
      this.#events.tell("wait", { ...ofCall({ name, kind, call, units }), heldBy, waitedFor: waited });
    if (at - this.#lastWarning < WARN_AGAIN) return;
    this.#lastWarning = at;
    const [where, cure] =
      heldBy === "this client"
        ? [`this process (pid ${process.pid})`, "nest withLock(), or re-enter inside locks.scope()"]
        : [
            `another lock client of this process (pid ${process.pid})`,
            "use one client for both, and nest withLock()",
          ];
    const [what, how] =
      units === undefined
        ? [`lock ${quote(name)}, which ${where} holds`, cure]
        : [
            `${units === 1 ? "a permit" : `${units} permits`} of ${quote(name)}, of which ${where} holds too many`,
            "take all that is needed by one acquire()",
          ];
    warn(
      `A caller has waited ${duration(waited)} for ${what}: if the code that holds it makes this call, that is a deadlock; ${how}.`,
      "LOCK_SELF_WAIT",
    );
  }

  /**
   * A caller has waited for `waited` ms for a lock that its own scope holds. An event for every
   * such caller; a process warning once for each pair of places. `place`: where the call was made.
   * `taken`: where the lock was taken; null: unknown.
   */
  warnOfScope(
    name: string,
    { kind, call }: Waiter,
    waited: number,
    place: string,
    taken: string | null,
  ): void {
    if (this.#events.hears("wait"))
      this.#events.tell("wait", { name, kind, call, heldBy: "this scope", waitedFor: waited });
    const both = `${place}\n${taken}`;
    if (this.#places.has(both) || this.#places.size >= MOST_PLACES) return;
    this.#places.add(both);
    const what =
      kind === "remember"
        ? `the result of ${quote(name)}, which the body around it is making: if that body waits for this call, that is a ` +
          "deadlock, so use another name; work of another caller that the body has started gets the result after it"
        : `lock ${quote(name)}, which its own scope holds` +
          `${taken === null ? "" : `, taken at ${taken}`}, and does not enter it because of \`reentrant: false\`: if the code that ` +
          "holds the lock waits for this call, that is a deadlock, so pass the lease on; work of another caller that runs in this " +
          "scope, such as a queue's job, gets the lock after it";
    warn(`A call at ${place} has waited ${duration(waited)} for ${what}.`, "LOCK_SELF_WAIT");
  }
}

/**
 * The clients of this process that are not closed. This must not keep an abandoned client from
 * being collected.
 */
const clients = new Set<WeakRef<SelfWait>>();

/** Names made at run time can lead to any number of places. */
const MOST_PLACES = 1_000;
const LOOK_EVERY = 1_000;
