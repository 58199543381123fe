/** What `perf stat -x,` counted; null: it could not, or may not. */
export function perfCount(output: string): number | null {
  const [, count] = /^(\d+),[^,]*,instructions:u,/m.exec(output) ?? [];
  return count === undefined ? null : Number(count);
}

/** The instructions of a dump of callgrind. @throws Error when it has none: nothing was counted */
export function callgrindTotal(dump: string): number {
  const [, total = "0"] = /^totals: (\d+)$/m.exec(dump) ?? [];
  if (total === "0") throw new Error("valgrind counted no instructions");
  return Number(total);
}
