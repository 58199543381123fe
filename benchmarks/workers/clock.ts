/**
 * µs that `performance.now()` is behind the system's monotonic clock: of some readings the one that
 * was disturbed least.
 */
const OFFSET = Array.from({ length: 50 }, () => {
  const before = process.hrtime.bigint();
  const now = performance.now();
  const took = Number(process.hrtime.bigint() - before);
  return { took, offset: (Number(before) + took / 2) / 1_000 - now * 1_000 };
}).reduce((best, reading) => (reading.took < best.took ? reading : best)).offset;

/** µs of the system's monotonic clock: the same for all processes of the machine, and cheap to read. */
export function micros(): number {
  return OFFSET + performance.now() * 1_000;
}
