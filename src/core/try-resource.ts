import type { LockKind } from "./lock-kind.ts";
import type { Place } from "./place.ts";
import type { Port } from "./port.ts";
import { Resource } from "./resource.ts";
import { TryPlace } from "./try-place.ts";

/**
 * One lock in use in this process that Redis does not queue: its callers are woken by messages on a
 * channel of the lock, or by time.
 */
export class TryResource extends Resource {
  /** Where its messages come. Null: there are none. */
  readonly #topic: string | null;
  /** Stops receiving them. Null: they are not received. */
  #unlisten: (() => void) | null = null;

  constructor(kind: LockKind, name: string, port: Port) {
    super(kind, name, port);
    this.#topic = kind.wake.by === "message" ? kind.wake.channel(name) : null;
  }

  override place(kind: LockKind): Place {
    return this.shared(kind) ?? new TryPlace(this, kind);
  }

  /** True also where there are no messages. */
  override get isHeard(): boolean {
    if (this.#topic === null) return true;
    return this.#unlisten !== null && this.port.inbox.subscriptions.isReady(this.#topic);
  }

  /** The subscription is acknowledged. */
  override subscribed(): void {
    if (!this.isHeard) return;
    for (const place of [...this.all]) if (place.isSubscribing) place.ask();
  }

  protected override async ready(): Promise<void> {
    const { subscriptions } = this.port.inbox;
    if (this.#topic === null) return;
    this.#unlisten ??= subscriptions.listen(this.#topic, (word) => {
      for (const place of this.all) if (place instanceof TryPlace) place.woken(word);
    });
    await subscriptions.ready(this.#topic);
  }

  protected override end(): void {
    this.#unlisten?.();
    super.end();
  }
}
