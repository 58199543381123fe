import { LockWantedError } from "../api/errors.ts";
import type { Hold } from "../core/lease/hold.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import type { LockKind } from "../core/lock-kind.ts";
import type { Waiter } from "../core/waiter.ts";
import type { Transport } from "../redis/transport.ts";
import { detached } from "../util/detached.ts";
import type { GrantInbox } from "./grant-inbox.ts";

/** What it needs of its client. */
interface Client {
  readonly inbox: GrantInbox;
  readonly commands: Transport;
  /** The callers of this client at a lock, by any kind of its protocol. */
  waitersOf(kind: { readonly protocol: string }, name: string): Iterable<Waiter>;
}

/**
 * The signals `lease.wanted`: each aborts when another caller waits for its lease. Protects holders
 * that never read `wanted` from paying for it: before the first read nothing is made, subscribed or
 * sent, and nothing is left of a lease that has ended.
 */
export class WantedSignals {
  /**
   * Those that are held and that no caller is known to wait for, by the lock's name: it has one
   * holder at a time.
   */
  readonly leases = new Map<string, SharedLease>();
  /** For every lease whose `wanted` was read. */
  readonly #controllers = new WeakMap<SharedLease, AbortController>();
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /**
   * Aborts when another caller waits for the lock. Never for a kind whose waiters do not notify the
   * holder.
   */
  signalOf(lease: SharedLease): AbortSignal {
    const known = this.#controllers.get(lease);
    if (known) return known.signal;
    const controller = new AbortController();
    this.#controllers.set(lease, controller);
    if (lease.owner.kind.answer && lease.held) this.#watch(lease);
    return controller.signal;
  }

  #watch(lease: SharedLease): void {
    const { hold, name } = lease;
    const since = hold.recalledAt ?? this.#waitsHereSince(lease);
    if (since !== null) {
      this.#tell(lease, since);
      return;
    }
    this.leases.set(name, lease);
    // Redis has said that no caller waited, and every message since then would have been received.
    const isKnown = hold.flag > 0 && hold.wantedAt === null && this.#client.inbox.hears(name);
    if (!isKnown) void this.#ask(lease);
  }

  /** Since when the first of the waiting callers of this client has waited; null: none waits. */
  #waitsHereSince({ owner, name }: SharedLease): number | null {
    let first: number | null = null;
    for (const { wait, since } of this.#client.waitersOf(owner.kind, name))
      if (wait > 0 && (first === null || since < first)) first = since;
    return first;
  }

  /**
   * RACE: a waiter may queue meanwhile. Before the lock's value says that its holder is notified,
   * the answer reports that waiter; after that, the waiter sends a message, which is received by
   * then. A failure is not reported: the next renewal says whether a caller waits.
   */
  async #ask(lease: SharedLease): Promise<void> {
    const { inbox, commands } = this.#client;
    const { hold, name } = lease;
    await inbox.ready(inbox.channelOf(name)).catch(() => {});
    if (this.leases.get(name) !== lease) return;
    // Keep a flag that was set before: it may say more.
    const flag = inbox.hears(name) && hold.flag === 0 ? 1 : null;
    await lease.renew(1, commands.replyTimeout, flag).catch(() => {});
  }

  /** The subscription is back, and messages may have been missed. */
  askAgain(): void {
    for (const lease of this.leases.values()) void this.#ask(lease);
  }

  /** Another caller waits for the lock of this hold, by a message or an answer. */
  recalled(hold: Hold): void {
    const lease = this.leases.get(hold.name);
    if (lease?.hold === hold && hold.recalledAt !== null) this.#tell(lease, hold.recalledAt);
  }

  /** A caller of this client waits for this lock. */
  came(kind: LockKind, name: string, waiter: Waiter): void {
    const lease = this.leases.get(name);
    // An election of that name is separate: its candidates do not wait for the lock.
    if (lease?.owner.kind.protocol === kind.protocol) this.#tell(lease, waiter.since);
  }

  /** No caller has this hold any more, or another one has it. */
  ended(hold: Hold): void {
    if (this.leases.get(hold.name)?.hold === hold) this.leases.delete(hold.name);
  }

  /** Must be the caller's last step: a listener may unlock, and make calls. */
  #tell(lease: SharedLease, since: number): void {
    this.ended(lease.hold);
    const reason = new LockWantedError(lease.name, since, lease.noun);
    detached(() => this.#controllers.get(lease)?.abort(reason));
  }
}
