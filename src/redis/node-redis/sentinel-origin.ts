import { Chain, copyOf, NOT_CONNECTED, soon } from "./chain.ts";
import { type Client, destroy, listenTo, nameOf, type Sentinel } from "./client.ts";
import type { Origin } from "./server-link.ts";

/** How long until a Sentinel object that was not connected is looked at again, in ms. */
const NEXT_LOOK = 50;

/**
 * A Sentinel object has clients of its own, and does not say when they lose their connection: only
 * that another server is the master. So commands go on clients like those, which are ours.
 */
export function sentinelOrigin(sentinel: Sentinel): Origin {
  const copies = new Copies(sentinel);
  const make = async (): Promise<Client> => {
    if (!sentinel.isOpen) throw new Error(NOT_CONNECTED);
    return sentinel._execute(false, async (master) => copies.of(master));
  };
  // It does not say when it is connected.
  const pause = (tries: number): number => (sentinel.isOpen ? soon(tries) : NEXT_LOOK);
  return {
    kind: "sentinel",
    address: "",
    get name() {
      const node = sentinel.getSentinelNode();
      return node ? `Sentinel group of ${nameOf({ socket: node })}` : "a Sentinel group";
    },
    isTls: false,
    keyPrefix: sentinel._keyPrefix ?? "",
    source: () => new Chain(make, pause, sentinel),
    make,
    pause,
  };
}

/** Clients of our own like those of a Sentinel object. */
class Copies {
  readonly #sentinel: Sentinel;
  readonly #all = new Set<Client>();
  #stop: () => void = () => {};

  constructor(sentinel: Sentinel) {
    this.#sentinel = sentinel;
  }

  /** RACE: ends when Sentinel names another master. This one may be frozen, and tell nothing of it. */
  of(master: Client): Client {
    const copy = copyOf(master);
    if (this.#all.size === 0) this.#stop = listenTo(this.#sentinel, { "topology-change": this.#changed });
    this.#all.add(copy);
    listenTo(copy, {
      end: () => {
        if (this.#all.delete(copy) && this.#all.size === 0) this.#stop();
      },
    });
    return copy;
  }

  readonly #changed = ({ type }: { type: string }): void => {
    if (type === "MASTER_CHANGE") for (const copy of [...this.#all]) destroy(copy);
  };
}
