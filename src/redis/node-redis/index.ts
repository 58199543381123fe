import type { Driver, Link } from "../driver.ts";
import { copyOf, pauseOf } from "./chain.ts";
import { type Client, isClient, isCluster, isSentinel, nameOf } from "./client.ts";
import { ClusterLink } from "./cluster-link.ts";
import type { Origin } from "./origin.ts";
import { sentinelOrigin } from "./sentinel-origin.ts";
import { ServerLink } from "./server-link.ts";

/** Lock clients on the same object share its link, so it gets no listeners per client. */
const links = new WeakMap<object, Link>();

/** node-redis, the package `redis`, 5 and 6: `createClient`, `createCluster` and `createSentinel`. */
export const nodeRedis: Driver = (given) => {
  if (typeof given !== "object" || given === null) return null;
  const known = links.get(given);
  if (known) return known;
  const link = linkTo(given);
  if (link) links.set(given, link);
  return link;
};

function linkTo(given: object): Link | null {
  if (isCluster(given)) return new ClusterLink(given);
  if (isSentinel(given)) return new ServerLink(sentinelOrigin(given));
  return isClient(given) ? new ServerLink(serverOrigin(given)) : null;
}

function serverOrigin(client: Client): Origin {
  return {
    kind: "server",
    address: "",
    get name() {
      return nameOf(client.options ?? {});
    },
    get isTls() {
      return client.options?.socket?.tls === true;
    },
    keyPrefix: client._keyPrefix ?? "",
    given: client,
    owner: null,
    make: () => copyOf(client),
    pause: (tries, error) => pauseOf(client)(tries, error),
  };
}
