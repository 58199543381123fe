import pTimeout from "p-timeout";
import type { CheckedServer } from "../../api/check.ts";
import { FENCE_SKEW } from "../../defaults.ts";
import { checkLua } from "../../redis/client-lua.generated.ts";
import type { Place } from "../../redis/driver.ts";
import { infoField, listOf, memoryUse } from "../../redis/fields.ts";
import { REPLICA, whereabouts } from "../../redis/trouble.ts";
import { clocks } from "../../util/clock.ts";
import { duration } from "../../util/duration.ts";
import { customTimers } from "../../util/real-timers.ts";
import { harmless } from "../../util/visible.ts";

/** Requirements for a server. */
export interface Wanted {
  /** ms for its answer. */
  readonly timeout: number;
  readonly replicas: number;
  readonly isCluster: boolean;
  /** For a quorum: how many ms its process must have been up. */
  readonly restartDelay: number;
}

export interface Looked extends CheckedServer {
  readonly runId: string | null;
  readonly warnings: readonly string[];
  readonly unknown: readonly string[];
}

/** The share of its clients or memory from which a server is nearly full. */
const NEARLY_FULL = 0.9;

/** Queries one server about itself. Never rejects. */
export async function lookAt(server: Place, place: string, wanted: Wanted): Promise<Looked> {
  const nothing = { place, version: null, roundTrip: null, evictionPolicy: null, replicas: null };
  const since = clocks.mono.now();
  try {
    const reply = await atMost(server.command(["EVAL", checkLua.look.lua, 0]), wanted.timeout);
    const roundTrip = clocks.mono.now() - since;
    const [at, ...sections] = listOf(reply).map(String);
    const clockAhead = Math.round(Number(at) / 1_000 - (clocks.wall.now() - roundTrip / 2));
    return judge(place, sections.join("\n"), { roundTrip, clockAhead }, wanted);
  } catch (error) {
    const why = harmless(error instanceof Error ? error.message : String(error));
    const problems = [`${place} gave no answer: ${why} (${whereabouts(server)}).`];
    return { ...nothing, clockAhead: null, runId: null, problems, warnings: [], unknown: [] };
  }
}

function judge(
  place: string,
  info: string,
  { roundTrip, clockAhead }: { roundTrip: number; clockAhead: number },
  { replicas: wantedReplicas, isCluster, restartDelay }: Wanted,
): Looked {
  const field = (name: string): string | null => infoField(info, name);
  const problems: string[] = [];
  const warnings: string[] = [];
  const unknown: string[] = [];
  const number = field("redis_version");
  const name = field("server_name");
  const version = name && name !== "redis" ? `${name} ${field(`${name}_version`) ?? number}` : number;
  const least = isCluster ? "7.0" : "6.2";
  if (number === null) unknown.push(`The version of ${place}: its user lacks the right to run INFO.`);
  else if (isOlder(number, least))
    problems.push(
      `${place} is Redis ${number}: ${isCluster ? "a Cluster" : "a server"} needs Redis ${least} or later.`,
    );
  const evictionPolicy = field("maxmemory_policy");
  if (evictionPolicy === null)
    unknown.push(`The eviction policy of ${place}: INFO memory does not report it.`);
  else if (evictionPolicy !== "noeviction")
    problems.push(
      `${place} may evict a held lock (maxmemory-policy ${evictionPolicy}): CONFIG SET maxmemory-policy noeviction.`,
    );
  const memory = memoryUse(info);
  if (evictionPolicy === "noeviction" && memory !== null && memory >= NEARLY_FULL)
    warnings.push(
      `${place} uses ${percent(memory)} of its maxmemory, and takes no new lock when it is full: raise maxmemory, or free memory.`,
    );
  const [connected, most] = [field("connected_clients"), field("maxclients")];
  const clients = Number(connected) / Number(most);
  if (connected === null || most === null)
    unknown.push(`The number of clients of ${place}: INFO clients does not report it.`);
  else if (clients >= NEARLY_FULL)
    warnings.push(
      `${place} has ${percent(clients)} of its maxclients, and refuses more: raise maxclients, or see what opens so many (CLIENT LIST).`,
    );
  const isPersistent = field("aof_enabled");
  if (isPersistent === null)
    unknown.push(`The persistence of ${place}: INFO persistence does not report it.`);
  // A quorum's master does not vote after a restart until its locks would have ended.
  else if (isPersistent === "0" && restartDelay === 0)
    warnings.push(
      `A restart of ${place} may lose held locks, and other callers can take them (appendonly no): CONFIG SET appendonly yes.`,
    );
  const role = field("role");
  if (role !== null && role !== "master") problems.push(`${place} ${REPLICA}.`);
  const replicas = number === null ? null : Number(field("connected_slaves") ?? 0);
  if (replicas === null && wantedReplicas > 0) unknown.push(`The replicas of ${place}.`);
  else if (replicas !== null && replicas < wantedReplicas)
    problems.push(`${place} has ${replicas} of the ${wantedReplicas} replicas that must have each lock.`);
  if (Math.abs(clockAhead) > FENCE_SKEW)
    problems.push(
      `The clock of ${place} is ${duration(Math.abs(clockAhead))} ${clockAhead > 0 ? "ahead of" : "behind"} this process's, and fencing tokens follow it: correct the wrong one.`,
    );
  const uptime = field("uptime_in_seconds");
  const age = uptime === null ? Number.POSITIVE_INFINITY : Number(uptime) * 1_000;
  if (age < restartDelay)
    problems.push(
      `${place} restarted ${uptime} s ago and votes in ${Math.ceil((restartDelay - age) / 1_000)} s.`,
    );
  return {
    place,
    version,
    roundTrip,
    evictionPolicy,
    replicas,
    clockAhead,
    problems,
    warnings,
    unknown,
    runId: field("run_id"),
  };
}

const percent = (share: number): string => `${Math.floor(share * 100)} %`;

function isOlder(version: string, least: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [leastMajor = 0, leastMinor = 0] = least.split(".").map(Number);
  return major < leastMajor || (major === leastMajor && minor < leastMinor);
}

/** Rejects when it takes longer. */
export const atMost = <T>(work: Promise<T>, milliseconds: number): Promise<T> =>
  pTimeout(work, {
    milliseconds,
    message: `nothing came within ${duration(milliseconds)}`,
    customTimers,
  });
