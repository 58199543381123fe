import type { Check } from "../../api/check.ts";
import type { Lock } from "../../api/lock.ts";
import type { Place } from "../../redis/driver.ts";
import type { GrantInbox } from "../../runtime/grant-inbox.ts";
import { clocks } from "../../util/clock.ts";
import { newNonce } from "../../util/random.ts";
import { harmless } from "../../util/visible.ts";
import { atMost, type Looked, lookAt } from "./one-server.ts";

/** The parts of a client that can be checked. */
export interface Checkable {
  /** The server; in Cluster its primaries; the masters of a quorum. */
  places(): readonly Place[];
  readonly isCluster: boolean;
  readonly isQuorum: boolean;
  readonly restartDelay: number;
  /** The channel on which this client receives a lock's messages. */
  channel(name: string): string;
  /** Publishes on that channel, at all servers. */
  publish(channel: string, message: string): Promise<unknown>;
  /** Why there is no connection. */
  trouble(): Error;
}

const UNHEARD = "Messages do not arrive, so waiters would have to poll";
/** The time left for the servers of a Cluster that did not answer in time, in ms. */
const LEAST = 50;

/** Checks servers, rights and messages in parallel. Never rejects. */
export async function check(
  target: Checkable,
  { inbox, clientId, lock }: { inbox: GrantInbox; clientId: string; lock: (name: string) => Lock },
  { timeout, replicas }: { timeout: number; replicas: number },
): Promise<Check> {
  const { isCluster, isQuorum, restartDelay } = target;
  // The lock for the check, used by this process alone. Concurrent checks wait for each other.
  const name = `holdfast:check:${clientId}`;
  const until = clocks.mono.now() + timeout;
  // The only real test of the rights: a lock's commands all run.
  const take = async (): Promise<void> => (await lock(name).lock({ wait: timeout })).unlock();
  const taking = problemOf("A lock cannot be taken and given back", take, timeout);
  // A Cluster client knows the nodes after its first command is answered.
  if (isCluster) await taking;
  const servers = target.places();
  const left = Math.max(LEAST, until - clocks.mono.now());
  const wanted = { timeout: left, replicas, isCluster, restartDelay };
  const [looked, refused, unheard] = await Promise.all([
    Promise.all(
      servers.map((server, i) =>
        lookAt(server, isQuorum ? `Node ${i + 1} (${server.name})` : server.name, wanted),
      ),
    ),
    taking,
    problemOf(UNHEARD, () => hear(target, inbox, name, left), left),
  ]);
  const twins = twinsOf(looked);
  // A quorum needs the messages of most nodes only, and one channel of a Cluster shows one node.
  const deaf = inbox.subscriptions.deafness().map((where) => `${UNHEARD}: ${where}.`.replace("?.", "?"));
  const isDeaf = deaf.length > 0 && (unheard !== null || !isQuorum);
  const problems = [refused ?? [], isDeaf ? deaf : (unheard ?? [])].flat();
  if (servers.length === 0) problems.push(`No server of the Cluster is known: ${target.trouble().message}.`);
  const well = looked.filter((one) => one.problems.length === 0).length;
  const isEnough = isQuorum
    ? well > looked.length / 2 && twins.length === 0
    : well === looked.length && well > 0;
  const roundTrips = looked.flatMap(({ roundTrip }) => roundTrip ?? []);
  return {
    ok: isEnough && problems.length === 0,
    problems: [...problems, ...twins, ...looked.flatMap((one) => one.problems)],
    warnings: [...(isDeaf ? [] : deaf), ...looked.flatMap((one) => one.warnings)],
    unknown: looked.flatMap((one) => one.unknown),
    roundTrip: roundTrips.length > 0 ? Math.max(...roundTrips) : null,
    servers: looked.map(({ runId: _, unknown: __, warnings: ___, ...server }) => server),
  };
}

/** Publishes a message to itself, and waits for it. */
async function hear(target: Checkable, inbox: GrantInbox, name: string, timeout: number): Promise<void> {
  const where = target.channel(name);
  // Grants use the same channel: it stays subscribed for the first waiter.
  if (!target.isQuorum) inbox.listen(where);
  const said = `check ${newNonce()}`;
  let stop = (): void => {};
  const heard = new Promise<void>((resolve) => {
    stop = inbox.subscriptions.listen(where, (message) => {
      if (message === said) resolve();
    });
  });
  try {
    await inbox.subscriptions.ready(where);
    // A master that hangs takes its time to fail; the others' messages come meanwhile.
    await atMost(Promise.race([heard, target.publish(where, said).then(() => heard)]), timeout);
  } finally {
    stop();
  }
}

async function problemOf(what: string, work: () => Promise<void>, timeout: number): Promise<string | null> {
  try {
    await atMost(work(), timeout);
    return null;
  } catch (error) {
    return `${what}: ${harmless(error instanceof Error ? error.message : String(error)).replace(/\.$/, "")}.`;
  }
}

function twinsOf(looked: readonly Looked[]): string[] {
  return looked.flatMap(({ runId, place }, i) => {
    const first = runId === null ? undefined : looked.slice(0, i).find((one) => one.runId === runId);
    if (!first) return [];
    return `${first.place} and ${place} are one server, which has one vote: give each node a server of its own.`;
  });
}
