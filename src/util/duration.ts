/** A duration in messages: "500 ms", "1.5 s", "30 s". */
export function duration(ms: number): string {
  const rounded = Math.round(ms);
  if (rounded < 1_000) return `${rounded} ms`;
  const seconds = ms / 1_000;
  return `${seconds < 100 ? Number(seconds.toPrecision(3)) : Math.round(seconds)} s`;
}
