import { percentile } from "../../tools/numbers.ts";
import { callersEach, type Done, type Load } from "../workers/protocol.ts";
import { type Acquisition, handoffs, merge, recorded, referee, sharesBySecond } from "./acquisitions.ts";
import type { LoadFigures } from "./result.ts";
import { jain, mean, median, pick, sum } from "./statistics.ts";

const WAITS_KEPT = 100;

/**
 * The figures of one round. `room`: how many may be inside at a time; `from`, `until`: the time
 * that counts, in µs; `redisCpu`, in µs, and `redisWrites`: from its start on.
 */
export function loadFigures(
  reports: readonly Done[],
  load: Load,
  round: {
    cold: readonly Done[];
    warmedUp: readonly Done[];
    room: number;
    from: number;
    until: number;
    redisCpu: number;
    redisWrites: number;
    commands: number | null;
  },
): LoadFigures {
  const each = callersEach(load);
  const all = merge(reports, each);
  const weights = reports.map((report) => recorded(report).weight);
  const workerOf = ({ caller }: Acquisition): number => Math.floor(caller / each);
  const isWriter = ({ caller }: Acquisition): boolean => caller % each >= load.tasks;
  const isMeasured = (one: Acquisition): boolean =>
    (!load.turns?.isLastMeasured || workerOf(one) === reports.length - 1) &&
    (load.writer === null || isWriter(one));
  const coldWaits = merge(round.cold, each)
    .filter(isMeasured)
    .map(({ acquired, asked }) => (acquired - asked) / 1_000);
  const counted = all.filter(
    (one) => one.acquired >= round.from && one.acquired < round.until && isMeasured(one),
  );
  const waits = Float64Array.from(counted, ({ acquired, asked }) => (acquired - asked) / 1_000).sort();
  const { inside, overlaps } = referee(all, round.room, isWriter);
  // Of an acquisition that was dropped nobody knows whether it was the one before; of many inside,
  // which one has made room.
  const isPassedOn = round.room === 1 && weights.every((weight) => weight <= 1);
  const handoff = Float64Array.from(isPassedOn ? handoffs(all) : []).sort();
  const callers = load.tasks * reports.length;
  // Shares of one name, while everybody wants it all the time.
  const isFairnessAsked = load.times === null && load.names.length === 1 && load.writer === null;
  const seconds = isFairnessAsked ? sharesBySecond(counted, round.from, round.until, callers) : [];
  const sent = round.commands ?? sum(reports.map(({ commands }) => commands));
  // Figures of a lock that nobody got would look better than any.
  if (counted.length === 0) throw new Error(nobody(reports));
  const total = sum(reports.map((report) => recorded(report).acquired)) ?? 0;
  const rated = sum(counted.map((one) => weights[workerOf(one)] ?? 1)) ?? 0;
  const acquiredBefore = (worker: number): number =>
    [round.cold[worker], round.warmedUp[worker]].reduce(
      (total, report) => total + (report ? recorded(report).acquired : 0),
      0,
    );
  const written = sum(reports.map(({ writes }) => writes));
  const first = counted[0]?.acquired ?? 0;
  const last = counted.at(-1)?.left ?? 0;
  return {
    is: "load",
    warmUp: Math.min(...reports.map((_, worker) => acquiredBefore(worker))),
    coldFirst1000: cpuOfFirst(0, round.cold),
    coldFirst2000: cpuOfFirst(1, round.cold),
    coldWaitMax: coldWaits.length === 0 ? null : coldWaits.reduce((most, wait) => Math.max(most, wait)),
    // A drain ends when it is done; a loop is cut in the middle.
    perSecond: rated / ((load.times === null ? round.until - round.from : last - first) / 1_000_000),
    handoffMedian: handoff.length === 0 ? null : percentile(handoff, 0.5),
    handoffP99: handoff.length === 0 ? null : percentile(handoff, 0.99),
    waitMedian: percentile(waits, 0.5),
    waitP99: percentile(waits, 0.99),
    waitMax: percentile(waits, 1),
    hold: mean(counted.map(({ acquired, left }) => (left - acquired) / 1_000)),
    calls: sent === null ? null : sent / total,
    writes: written === null ? null : written / total,
    redisWrites: round.redisWrites / total,
    redisCpu: round.redisCpu / total,
    clientCpu: (sum(reports.map(({ cpu }) => cpu)) ?? 0) / total,
    jain: seconds.length === 0 ? null : median(seconds.map(jain)),
    inside,
    overlaps,
    timeouts: sum(reports.map(({ timeouts }) => timeouts)) ?? 0,
    errors: sum(reports.map(({ errors }) => errors)) ?? 0,
    messages: [...new Set(reports.flatMap(({ messages }) => messages))],
    waits: pick(waits, WAITS_KEPT),
  };
}

/**
 * ms of CPU time of a process until it reached this one of the MILESTONES, median of those that
 * did; null: none did.
 */
function cpuOfFirst(milestone: number, cold: readonly Done[]): number | null {
  const reached = cold.flatMap(({ cpuAt = [] }) => cpuAt.slice(milestone, milestone + 1));
  return reached.length === 0 ? null : median(reached) / 1_000;
}

function nobody(reports: readonly Done[]): string {
  const messages = [...new Set(reports.flatMap(({ messages }) => messages))];
  return ["nobody got the lock", ...messages.slice(0, 1)].join(": ");
}
