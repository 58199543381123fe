import type { Driver, Link } from "../driver.ts";
import { Chain, copyOf, pauseOf, soon } from "./chain.ts";
import {
  type Client,
  destroy,
  isClient,
  isCluster,
  isPool,
  isSentinel,
  listenTo,
  nameOf,
  type Sentinel,
} from "./client.ts";
import { ClusterLink } from "./cluster-link.ts";
import { Given } from "./given.ts";
import { type Origin, ServerLink } from "./server-link.ts";

/** Lock clients on the same object share its link, so that it has no more listeners for each. */
const links = new WeakMap<object, Link>();

/**
 * node-redis, the package `redis`, 5 and 6: `createClient`, `createCluster` and `createSentinel`.
 *
 * @throws TypeError for a pool
 */
export const nodeRedis: Driver = (given) => {
  if (typeof given !== "object" || given === null) return null;
  const known = links.get(given);
  if (known) return known;
  const link = linkTo(given);
  if (link) links.set(given, link);
  return link;
};

function linkTo(given: object): Link | null {
  if (isPool(given))
    throw new TypeError(
      "a node-redis pool gives each command another connection, and none to listen on: pass what createClient() returns",
    );
  if (isCluster(given)) return new ClusterLink(given);
  if (isSentinel(given)) return new ServerLink(sentinelOrigin(given));
  return isClient(given) ? new ServerLink(serverOrigin(given)) : null;
}

function serverOrigin(client: Client): Origin {
  const { options = {} } = client;
  return {
    kind: "server",
    address: "",
    name: nameOf(options),
    isTls: options.socket?.tls === true,
    keyPrefix: client._keyPrefix ?? "",
    source: () => new Given(client),
    make: () => copyOf(client),
    pause: pauseOf(client),
  };
}

/**
 * A Sentinel object has clients of its own, and does not say when they lose their connection: only
 * that another server is the master. So commands go on clients like those, which are ours.
 */
function sentinelOrigin(sentinel: Sentinel): Origin {
  const copies = new Copies(sentinel);
  const make = () => sentinel._execute(false, async (master) => copies.of(master));
  return {
    kind: "sentinel",
    address: "",
    get name() {
      const node = sentinel.getSentinelNode();
      return node ? `Sentinel group of ${nameOf({ socket: node })}` : "a Sentinel group";
    },
    isTls: false,
    keyPrefix: sentinel._keyPrefix ?? "",
    source: () => new Chain(make, soon, sentinel),
    make,
    pause: soon,
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
