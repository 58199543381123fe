import { HOLDFAST, PERMITS } from "../contenders/ids.ts";
import { LOAD, type Scenario } from "./scenario.ts";

const SPINNING = ["spin-1-128", "spin-80", "spin-10"];
const PEERS = [
  "redlock4",
  "redlock",
  "redlock-universal",
  "redis-semaphore",
  "simple-redis-mutex",
  "node-redisson",
];
const JAVA = ["java-lock", "java-fair-lock"];
const ALL = [...HOLDFAST, "lock-node-redis", ...SPINNING, ...PEERS, ...JAVA];
/** Where a round is long, one of each sort. */
const ONE_OF_EACH = [
  ...HOLDFAST,
  "spin-1-128",
  "redlock4",
  "redlock",
  "redlock-universal",
  "redis-semaphore",
  "simple-redis-mutex",
  "java-lock",
];
/** With lingering and without, and what sends as little as a lock can. */
const LINGERING = ["lock", "lingering-lock", "redis-semaphore"];
/** Whose caller can take the lock again at once, while the others pause. */
const RETAKING = [...SPINNING, "redlock4", "redlock", "redlock-universal", "redis-semaphore"];
const HOPS = ["floor-hop", "floor-hop-and-ask", "principle"];

/**
 * One lock, P processes with T callers each. A caller that has released the lock asks for it again
 * at once.
 */
function hot(processes: number, tasks: number, contenders: readonly string[], hold = 0): Scenario {
  return {
    name: `hot-${processes}x${tasks}${hold > 0 ? `-hold-${hold}` : ""}`,
    about: `One lock, ${processes} processes with ${tasks} ${tasks === 1 ? "caller" : "callers"} each, held for ${hold === 0 ? "no time" : `${hold} ms`}`,
    processes,
    load: { ...LOAD, tasks, hold },
    duration: hold >= 100 ? 8_000 : 3_000,
    slices: 1,
    contenders: [...HOPS, ...contenders],
  };
}

/**
 * The same as `hot`, with what it takes to give up a little fairness and crash recovery for the
 * rate: `linger`.
 */
const lingeringHot = (processes: number, tasks: number): Scenario => ({
  ...hot(processes, tasks, ["lock", "fair-lock", "lingering-lock", ...RETAKING]),
  name: `lingering-${processes}x${tasks}`,
});

/** So many callers come at once, and each gets the lock once, for a millisecond. */
function drain(callers: number, processes: number): Scenario {
  return {
    name: `drain-${callers}`,
    about: `${callers} callers in ${processes} processes ask at the same moment; each holds the lock once, for 1 ms`,
    processes,
    load: { ...LOAD, tasks: callers / processes, hold: 1, times: 1, wait: 60_000 },
    duration: 30_000,
    slices: 1,
    contenders: ONE_OF_EACH,
  };
}

const THOUSAND = Array.from({ length: 1_000 }, (_, i) => `bench:${i}`);

/** Processes that mostly want the locks that they had before, as workers with customers of their own do. */
function affinity(percent: number): Scenario {
  return {
    name: `affinity-${percent}`,
    about: `1 000 locks, 4 processes with 4 callers each, 250 locks are each process's own: of ${percent} % of the acquisitions; the rest are of any lock`,
    processes: 4,
    load: { ...LOAD, tasks: 4, names: THOUSAND, own: percent / 100 },
    duration: 4_000,
    slices: 1,
    contenders: LINGERING,
  };
}

const lingering: readonly Scenario[] = [
  lingeringHot(32, 1),
  lingeringHot(8, 1),
  lingeringHot(4, 4),
  affinity(100),
  affinity(90),
  affinity(50),
  affinity(0),
  {
    name: "ping-pong",
    about: "One lock, 2 processes with one caller each, strictly in turn: every 4 ms the other one takes it",
    processes: 2,
    load: { ...LOAD, turns: { every: 8, first: 1, isLastMeasured: false } },
    duration: 4_000,
    slices: 1,
    contenders: LINGERING,
  },
  {
    name: "one-process",
    about: "One lock, one process with 16 callers, held for no time",
    processes: 1,
    load: { ...LOAD, tasks: 16 },
    duration: 3_000,
    slices: 1,
    contenders: [...LINGERING, "fair-lock"],
  },
  {
    name: "first-of-another",
    about:
      "A process takes a lock four times in a row; 4 ms later another process takes it for the first time, and that one is measured",
    processes: 2,
    load: {
      ...LOAD,
      names: Array.from({ length: 2_000 }, (_, i) => `bench:${i}`),
      turns: { every: 8, first: 4, isLastMeasured: true },
    },
    duration: 4_000,
    slices: 1,
    contenders: LINGERING,
  },
];

/** As many readers as come: what they share, against a lock that each has for itself. */
function reads(hold: number): Scenario {
  return {
    name: `reads-hold-${hold}`,
    about: `4 processes with 16 readers each, no writer, ${hold === 0 ? "held for no time" : `each holds for ${hold} ms`}`,
    processes: 4,
    load: { ...LOAD, tasks: 16, hold },
    duration: 3_000,
    slices: 1,
    contenders: ["lock", "read-write-lock"],
  };
}

/** Where several callers are inside at a time. */
const sharing: readonly Scenario[] = [
  {
    name: "semaphore-10",
    about: `One semaphore of ${PERMITS} permits, 4 processes with 4 callers each, each holds one for 1 ms`,
    processes: 4,
    load: { ...LOAD, tasks: 4, hold: 1 },
    duration: 3_000,
    slices: 1,
    contenders: ["semaphore", "redis-semaphore-permits"],
  },
  reads(1),
  reads(0),
  {
    name: "one-writer",
    about:
      "8 processes with 8 readers each, and one writer with pauses of up to 20 ms; each holds for 1 ms. Rate and waits are the writer's",
    processes: 8,
    load: { ...LOAD, tasks: 8, hold: 1, writer: 20 },
    duration: 30_000,
    slices: 1,
    contenders: ["read-write-lock"],
  },
];

const most: readonly Scenario[] = [
  {
    name: "uncontended",
    about: "One caller takes and releases a free lock, again and again",
    processes: 1,
    load: LOAD,
    duration: 1_000,
    slices: 3,
    contenders: ["floor-pair", ...ALL],
  },
  hot(2, 1, ONE_OF_EACH),
  hot(4, 4, ALL),
  hot(12, 4, ONE_OF_EACH),
  // Thirty-two JVMs do not fit beside each other on two cores.
  hot(
    32,
    1,
    ONE_OF_EACH.filter((id) => !JAVA.includes(id)),
  ),
  hot(4, 64, ONE_OF_EACH),
  hot(4, 4, ONE_OF_EACH, 1),
  hot(4, 4, ONE_OF_EACH, 5),
  hot(4, 4, ONE_OF_EACH, 200),
  {
    name: "mixed-leases",
    about: "One lock, 4 processes with 4 callers each, leases of 1, 5 and 30 s and for as long as it takes",
    processes: 4,
    load: { ...LOAD, tasks: 4, hold: 1, leases: [1_000, 5_000, 30_000, null] },
    duration: 3_000,
    slices: 1,
    contenders: ONE_OF_EACH,
  },
  {
    name: "many-locks",
    about: "1 000 locks, 4 processes with 4 callers each, a random lock at every turn",
    processes: 4,
    load: { ...LOAD, tasks: 4, names: THOUSAND },
    duration: 3_000,
    slices: 1,
    contenders: ALL,
  },
  drain(10, 2),
  drain(50, 5),
  drain(200, 8),
  drain(1_000, 8),
  {
    name: "wake-up",
    about: "One lock, 2 processes with one caller each, held for 5 ms, then up to 20 ms of other work",
    processes: 2,
    load: { ...LOAD, hold: 5, think: 20 },
    duration: 5_000,
    slices: 1,
    contenders: ["floor-hop", "principle", ...ONE_OF_EACH],
  },
  {
    name: "steady",
    about:
      "64 names, each wanted once a second on average, as by 64 processes that have one each: 8 processes with 8 callers each",
    processes: 8,
    load: { ...LOAD, tasks: 8, names: THOUSAND.slice(0, 64), own: 1, think: 2_000 },
    duration: 10_000,
    slices: 1,
    contenders: ["floor-pair", "principle", ...HOLDFAST, "lingering-lock", ...PEERS],
  },
  {
    name: "held-leases",
    about: "One process holds 10 000 locks and keeps them alive",
    processes: 1,
    load: { is: "held", callers: 10_000, watch: 30_000 },
    duration: 60_000,
    slices: 1,
    contenders: [...HOLDFAST, "redis-semaphore"],
  },
  {
    name: "parked-waiters",
    about: "10 000 callers of one process wait for one lock that stays held",
    processes: 1,
    load: { is: "parked", callers: 10_000, watch: 5_000 },
    duration: 60_000,
    slices: 1,
    contenders: ONE_OF_EACH.filter((id) => !JAVA.includes(id)),
  },
];

export const scenarios: readonly Scenario[] = [...most, ...lingering, ...sharing];
