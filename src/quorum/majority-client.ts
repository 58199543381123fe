import { LockError } from "../api/errors.ts";
import type { Lock } from "../api/lock.ts";
import { checkReentrance, type ReentranceOptions } from "../api/reentrance.ts";
import { BaseClient } from "../client/base-client.ts";
import { GRANT_WINDOW } from "../defaults.ts";
import { hasNoInside } from "../inside.ts";
import type { Link } from "../redis/driver.ts";
import { publishProbe } from "../redis/messages.ts";
import { inspectAs } from "../util/print.ts";
import { channelAt } from "./node-commands.ts";
import type { QuorumSettings } from "./options.ts";
import { Quorum } from "./quorum.ts";
import type { QuorumClient } from "./quorum-client.ts";
import { QuorumKind } from "./quorum-kind.ts";
import { QuorumSubscriptions } from "./subscriptions.ts";

/** The locks on several independent masters. */
export class MajorityClient extends BaseClient implements QuorumClient {
  readonly #kind: QuorumKind;

  constructor(given: readonly Link[], settings: QuorumSettings) {
    const links = settings.connection === "own" ? given.map((link) => link.open()) : given;
    const quorum = new Quorum(links, settings);
    super({
      transport: quorum,
      subscribe: (audience) => new QuorumSubscriptions(quorum, audience),
      label: settings.label,
      window: GRANT_WINDOW,
      leaseTime: settings.leaseTime,
      longestLease: settings.longestLease,
      reentrant: settings.reentrant,
      replicas: 0,
      checkable: {
        places: () => links,
        isCluster: false,
        isQuorum: true,
        restartDelay: settings.restartDelay,
        channel: (name) => quorum.keys.ofQuorum(name).free,
        publish: (channel, message) =>
          Promise.allSettled(
            quorum.nodes.map((node) => publishProbe(node.commands, channelAt(node, channel), message)),
          ),
        trouble: () => quorum.trouble(),
      },
      closed: () => {
        if (links !== given) for (const link of links) link.close();
      },
    });
    hasNoInside(this, settings);
    quorum.onTwin = (node, other) => this.locks.events.report(oneServer(node, other));
    this.#kind = new QuorumKind(quorum, settings, this.locks);
  }

  lock(name: string, options?: ReentranceOptions): Lock {
    const { reentrant } = checkReentrance(
      options,
      "for several masters it is an option of the client, or there is none",
    );
    return this.lockOf(name, this.#kind, { reentrant });
  }

  /** For callers without types. */
  semaphore(): never {
    throw new TypeError(
      "Cannot create a semaphore: a majority of several masters does not bound how many hold it: with two permits on each of three " +
        "masters, three callers have a majority each; use a client of one server, a Sentinel group or a Cluster.",
    );
  }

  /** For callers without types. */
  runOnce(): never {
    throw new TypeError(
      "Cannot run anything once per interval with several masters: an interval counts by the clock of one server, and theirs differ; use a client of one server, a Sentinel group or a Cluster.",
    );
  }

  /** For callers without types. */
  remember(): never {
    throw new TypeError(NOT_REMEMBERED);
  }

  /** For callers without types. */
  remembered(): never {
    throw new TypeError(NOT_REMEMBERED);
  }

  /** For callers without types. */
  forget(): never {
    throw new TypeError(NOT_REMEMBERED);
  }

  /** For callers without types. */
  stopRun(): never {
    throw new TypeError(NOT_REMEMBERED);
  }

  /** For callers without types. */
  election(): never {
    throw new TypeError(
      "Cannot create an election: the leader's term and value must be stored in one place, and of several masters each could " +
        "name another leader; use a client of one server, a Sentinel group or a Cluster.",
    );
  }

  /** For callers without types. */
  list(): never {
    throw new TypeError(
      "Cannot list locks of several masters: each knows only its own votes, and no majority of them; ask for a lock by its name with inspect().",
    );
  }

  /** For callers without types. */
  readWriteLock(): never {
    throw new TypeError(
      "Cannot create a read-write lock: readers and writers are served in one order, and several masters that know nothing of each " +
        "other agree on none; use a client of one server, a Sentinel group or a Cluster.",
    );
  }
}

const NOT_REMEMBERED =
  "Cannot remember results with several masters: a result must be stored in one place, and of several masters each could " +
  "remember another; use a client of one server, a Sentinel group or a Cluster.";

const oneServer = (node: number, other: number): LockError =>
  new LockError(
    "QUORUM_TWIN",
    null,
    `Nodes ${other} and ${node} of this quorum are one server, which has one vote: with that server down there may be no majority; ` +
      "give createQuorumClient() a connection to a server of its own for each node.",
  );

inspectAs(MajorityClient, "QuorumClient");
