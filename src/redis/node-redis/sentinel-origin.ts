import { copyOf, NOT_CONNECTED, type Owner, soon } from "./chain.ts";
import { type Client, listenTo, nameOf, type Sentinel } from "./client.ts";
import type { Origin } from "./origin.ts";

/** How long until a Sentinel object that was not connected is checked again, in ms. */
const NEXT_LOOK = 50;

/**
 * A Sentinel object has clients of its own, and does not report when they lose their connection,
 * only that another server is the master. So commands are sent on copies of its clients, which are
 * ours.
 */
export function sentinelOrigin(sentinel: Sentinel): Origin {
  const masters = new Masters(sentinel);
  const owner: Owner = {
    get isOpen() {
      return sentinel.isOpen;
    },
    // Version 5 does not report that it was closed.
    watch: (moved, closed) =>
      listenTo(sentinel, {
        "topology-change": ({ type }: { type: string }) => type === "MASTER_CHANGE" && moved(),
        end: closed,
      }),
  };
  return {
    kind: "sentinel",
    address: "",
    get name() {
      const node = sentinel.getSentinelNode();
      return node ? `Sentinel group of ${nameOf({ socket: node })}` : "Sentinel group";
    },
    isTls: false,
    keyPrefix: sentinel._keyPrefix ?? "",
    owner,
    make: () => masters.copy(),
    refused: () => masters.doubt(),
    // It does not report when it is connected.
    pause: (tries) => (sentinel.isOpen ? soon(tries) : NEXT_LOOK),
  };
}

/** Makes our own copies of a Sentinel object's clients that lead to the master. */
class Masters {
  readonly #sentinel: Sentinel;
  /** The client that it lent last. The object closes clients that lead to a former master. */
  #lent: Client | null = null;
  #isAsking = false;
  #isInDoubt = false;

  constructor(sentinel: Sentinel) {
    this.#sentinel = sentinel;
  }

  /** The server of the client that it lent last takes no writes. */
  doubt(): void {
    this.#isInDoubt = true;
  }

  async copy(): Promise<Client> {
    if (!this.#sentinel.isOpen) throw new Error(NOT_CONNECTED);
    if (!this.#lent?.isOpen) return copyOf(await this.#lend());
    // The application may use all of its clients for long, and often there is only one. A client is
    // requested all the same, because the object then checks whether there is another master, if its
    // client is not connected or its server is in doubt.
    if (!this.#isAsking) {
      this.#isAsking = true;
      const asked = (): void => {
        this.#isAsking = false;
      };
      this.#lend().then(asked, asked);
    }
    return copyOf(this.#lent);
  }

  #lend(): Promise<Client> {
    return this.#sentinel._execute(false, async (client) => {
      const isInDoubt = this.#isInDoubt && client === this.#lent;
      this.#isInDoubt = false;
      // RACE: versions 5 and 6 may lose their subscription at the sentinels for good, if its
      // connection is closed while they look for the master. Then no failover reaches the object,
      // and its client reconnects to the former master. It asks the sentinels, and calls this
      // again, when a command is refused like this.
      if (isInDoubt) throw new Error("READONLY");
      this.#lent = client;
      return client;
    });
  }
}
