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

/** What all workers have recorded, in the order in which the lock was acquired. */
export function merge(reports: readonly Done[], tasks: number): Acquisition[] {
  const all: Acquisition[] = [];
  for (const [worker, { samples }] of reports.entries()) {
    const bytes = new Uint8Array(Buffer.from(samples, "base64"));
    const numbers = new Float64Array(bytes.buffer);
    for (let at = 0; at < numbers.length; at += FIELDS) {
      const [caller = 0, name = 0, asked = 0, acquired = 0, left = 0] = numbers.subarray(at, at + FIELDS);
      all.push({ caller: worker * tasks + caller, name, asked, acquired, left });
    }
  }
  return all.sort((one, other) => one.acquired - other.acquired);
}

/**
 * How the lock went from one caller to the next: ms from the call of the release to the next holder's first statement,
 * where that one was waiting already; and how often somebody had it before the release was even called.
 */
export function handoffs(ordered: readonly Acquisition[]): { latencies: number[]; overlaps: number } {
  const latest = new Map<number, Acquisition>();
  const latencies: number[] = [];
  let overlaps = 0;
  for (const next of ordered) {
    const previous = latest.get(next.name);
    if (previous && next.acquired < previous.left) overlaps++;
    else if (previous && next.asked <= previous.left) latencies.push((next.acquired - previous.left) / 1_000);
    latest.set(next.name, next);
  }
  return { latencies, overlaps };
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
