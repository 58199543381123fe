import type { Done } from "../workers/protocol.ts";

/** One acquisition, as its caller saw it; times in µs of one clock for all processes. */
export interface Acquisition {
  /** Of all callers of all processes. */
  readonly caller: number;
  readonly name: number;
  readonly asked: number;
  readonly acquired: number;
  readonly left: number;
}

const FIELDS = 5;

/** How many a worker has recorded, and for how many each of them stands: some may have been dropped. */
export function recorded({ samples, acquired }: Done): { acquired: number; weight: number } {
  const kept = Buffer.byteLength(samples, "base64") / (FIELDS * Float64Array.BYTES_PER_ELEMENT);
  return { acquired: acquired ?? kept, weight: kept === 0 ? 1 : (acquired ?? kept) / kept };
}

/**
 * What all workers have recorded, in the order in which the lock was acquired. `each`: numbers of
 * callers in a process.
 */
export function merge(reports: readonly Done[], each: number): Acquisition[] {
  const all: Acquisition[] = [];
  for (const [worker, { samples }] of reports.entries()) {
    const bytes = new Uint8Array(Buffer.from(samples, "base64"));
    const numbers = new Float64Array(bytes.buffer);
    for (let at = 0; at < numbers.length; at += FIELDS) {
      const [caller = 0, name = 0, asked = 0, acquired = 0, left = 0] = numbers.subarray(at, at + FIELDS);
      all.push({ caller: worker * each + caller, name, asked, acquired, left });
    }
  }
  return all.sort((one, other) => one.acquired - other.acquired);
}

/**
 * How a lock went from one caller to the next: ms from the call of the release to the next holder's
 * first statement, where that one was waiting already.
 */
export function handoffs(ordered: readonly Acquisition[]): number[] {
  const latest = new Map<number, Acquisition>();
  const latencies: number[] = [];
  for (const next of ordered) {
    const previous = latest.get(next.name);
    if (previous && next.acquired >= previous.left && next.asked <= previous.left)
      latencies.push((next.acquired - previous.left) / 1_000);
    latest.set(next.name, next);
  }
  return latencies;
}

/**
 * How many had the same name at a time, at most; and how often one got in that must not have: there
 * was no room, or a writer was inside, or it is a writer and was not alone. A caller is inside
 * until its release is called, not until that has ended.
 */
export function referee(
  ordered: readonly Acquisition[],
  room: number,
  isWriter: (one: Acquisition) => boolean,
): { inside: number; overlaps: number } {
  const insideOf = new Map<number, Acquisition[]>();
  let inside = 0;
  let overlaps = 0;
  for (const next of ordered) {
    const others = (insideOf.get(next.name) ?? []).filter(({ left }) => left > next.acquired);
    if (others.length >= (isWriter(next) ? 1 : room) || others.some(isWriter)) overlaps++;
    others.push(next);
    insideOf.set(next.name, others);
    inside = Math.max(inside, others.length);
  }
  return { inside, overlaps };
}

/** How many acquisitions each caller got in each full second. */
export function sharesBySecond(
  all: readonly Acquisition[],
  from: number,
  until: number,
  callers: number,
): number[][] {
  const seconds = Array.from({ length: Math.floor((until - from) / 1_000_000) }, () =>
    new Array<number>(callers).fill(0),
  );
  for (const { caller, acquired } of all) {
    const shares = seconds[Math.floor((acquired - from) / 1_000_000)];
    if (shares && acquired >= from) shares[caller] = (shares[caller] ?? 0) + 1;
  }
  return seconds;
}
