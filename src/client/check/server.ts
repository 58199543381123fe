import pTimeout from "p-timeout";
import type { CheckedServer } from "../../api/check.ts";
import { FENCE_SKEW } from "../../defaults.ts";
import { checkLua } from "../../redis/client-lua.generated.ts";
import type { Place } from "../../redis/driver.ts";
import { listOf } from "../../redis/fields.ts";
import { whereabouts } from "../../redis/trouble.ts";
import { clocks } from "../../util/clock.ts";
import { duration } from "../../util/duration.ts";
import { customTimers } from "../../util/real-timers.ts";
import { harmless } from "../../util/visible.ts";

/** What a server must be. */
export interface Wanted {
  /** ms that it may take to answer. */
  readonly timeout: number;
  readonly replicas: number;
  readonly isCluster: boolean;
  /** Of a quorum: ms that its process must have been up for. */
  readonly restartDelay: number;
}

export interface Looked extends CheckedServer {
  readonly runId: string | null;
  readonly unknown: readonly string[];
}

/** Asks one server about itself. Never rejects. */
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
    return { ...nothing, clockAhead: null, runId: null, problems, unknown: [] };
  }
}

function judge(
  place: string,
  info: string,
  { roundTrip, clockAhead }: { roundTrip: number; clockAhead: number },
  { replicas: wantedReplicas, isCluster, restartDelay }: Wanted,
): Looked {
  const field = (name: string): string | null =>
    new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1] ?? null;
  const problems: string[] = [];
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
  if (evictionPolicy === null) unknown.push(`The eviction policy of ${place}: INFO memory does not tell it.`);
  else if (evictionPolicy !== "noeviction")
    problems.push(
      `${place} may evict a lock under its holder (maxmemory-policy ${evictionPolicy}): CONFIG SET maxmemory-policy noeviction.`,
    );
  const role = field("role");
  if (role !== null && role !== "master")
    problems.push(`${place} is a replica, which takes no writes: connect to the primary.`);
  const replicas = number === null ? null : Number(field("connected_slaves") ?? 0);
  if (replicas === null && wantedReplicas > 0) unknown.push(`The replicas of ${place}.`);
  else if (replicas !== null && replicas < wantedReplicas)
    problems.push(`${place} has ${replicas} of the ${wantedReplicas} replicas that must have each lock.`);
  if (Math.abs(clockAhead) > FENCE_SKEW)
    problems.push(
      `The clock of ${place} is ${duration(Math.abs(clockAhead))} ${clockAhead > 0 ? "ahead of" : "behind"} this process's, and fencing tokens follow it: set the wrong one right.`,
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
    unknown,
    runId: field("run_id"),
  };
}

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
