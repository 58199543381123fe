/** Stands where nothing was measured. */
export const NONE = "–";

const GROUP = /\B(?=(\d{3})+$)/g;

/** Two significant digits at least, and all digits before the point: 0.35, 1.8, 42, 14 297. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return NONE;
  if (value === 0) return "0";
  if (value < 0.995) return value.toFixed(2);
  if (value < 9.95) return value.toFixed(1);
  return Math.round(value).toString().replace(GROUP, " ");
}

/** A latency: 0.35 ms, 1.8 ms, 4 200 ms, 12 s. */
export function inMs(value: number): string {
  return value < 10_000 ? `${short(value)} ms` : `${short(value / 1_000)} s`;
}

/** A time to wait for a benchmark: 8 s, 4 min 5 s, 2 h 10 min. */
export function inMinutes(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
