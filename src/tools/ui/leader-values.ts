import type { Leader, Listed, LockClient } from "../../index.ts";

/** Elections whose leaders are remembered. */
const NAMES = 100;

/** What the leaders of elections publish, such as an address: a list of locks does not have it. */
export class LeaderValues {
  readonly #locks: LockClient;
  readonly #known = new Map<string, Leader | null>();
  readonly #asked = new Map<string, Promise<void>>();

  constructor(locks: LockClient) {
    this.#locks = locks;
  }

  /** Asks for the leader, once for all viewers. Never rejects: why Redis fails is shown anyway. */
  refresh(name: string): Promise<void> {
    const asked = this.#asked.get(name) ?? this.#ask(name).finally(() => this.#asked.delete(name));
    this.#asked.set(name, asked);
    return asked;
  }

  async #ask(name: string): Promise<void> {
    try {
      this.#keep(name, await this.#locks.election(name).leader());
    } catch {
      this.#keep(name, null);
    }
  }

  /** Null: the leader publishes nothing, or what it publishes is not known yet. */
  of({ name, holder }: Listed): string | null {
    const leader = this.#known.get(name);
    // RACE: the lead may have changed between the two answers: then this value would be shown with
    // another leader.
    return (leader && leader.token === holder?.token && leader.value) || null;
  }

  #keep(name: string, leader: Leader | null): void {
    this.#known.delete(name);
    this.#known.set(name, leader);
    const [oldest] = this.#known.keys();
    if (this.#known.size > NAMES && oldest !== undefined) this.#known.delete(oldest);
  }
}
