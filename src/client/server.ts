import type { Settings } from "../api/options.ts";
import { ClusterSubscriber } from "../redis/cluster-subscriber.ts";
import type { Commands } from "../redis/commands.ts";
import type { Link, Place } from "../redis/driver.ts";
import { Replication } from "../redis/replication.ts";
import { ScriptRunner } from "../redis/script-runner.ts";
import { Subscriber } from "../redis/subscriber.ts";
import type { Parts } from "./base-client.ts";

/** What runs a client's scripts and carries its messages: a Redis, or a test's memory. */
export interface Server extends Pick<Parts, "subscribe" | "closed" | "process"> {
  readonly commands: Commands;
  readonly replication: Replication | null;
  /**
   * The servers whose databases together have all keys: the only one, or the primaries of a
   * Cluster.
   */
  readonly places: () => readonly Place[];
}

/** A single server, a Sentinel group or a Cluster, on the caller's connection. */
export function redisServer(given: Link, settings: Settings): Server {
  const { connection, prefix, replyTimeout } = settings;
  const link = connection === "own" ? given.open() : given;
  const { nodes } = link;
  const commands = new ScriptRunner(link, replyTimeout, prefix);
  const replication = settings.replicas > 0 ? new Replication(link, settings) : null;
  return {
    commands,
    replication,
    subscribe: (audience) =>
      nodes
        ? new ClusterSubscriber(nodes, audience, commands)
        : new Subscriber({ place: link, isSharded: false, ...audience }, commands),
    places: () => nodes?.primaries() ?? [link],
    closed: () => {
      replication?.close();
      if (link !== given) link.close();
    },
  };
}
