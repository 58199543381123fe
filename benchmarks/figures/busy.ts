/** Of the time of all processors, how much other processes may have used while something was measured. */
const MOST = 0.1;
/** Linux counts in hundredths of a second. */
const TICKS = 100;

/** What the machine had done at a moment, in ticks of all processors. */
export interface Done {
  readonly passed: number;
  /** By programs and the kernel for them, and by other machines on the same hardware. */
  readonly used: number;
  /** By this process, its children that have ended, and the server. */
  readonly ours: number;
}

/**
 * What /proc says. A child counts when it has ended and was waited for. `server`: CPU time of the
 * server, in µs, which runs on.
 *
 * @param stat /proc/stat
 * @param self /proc/self/stat
 */
export function readDone(stat: string, self: string, server: number): Done {
  const all = (/^cpu +(.*)$/m.exec(stat)?.[1] ?? "").split(" ").map(Number);
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = all;
  const used = user + nice + system + steal;
  // The name of a program may have blanks and brackets in it; its state, the third field, comes
  // after the last bracket.
  const fields = self.slice(self.lastIndexOf(")") + 2).split(" ");
  const ours = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { passed: used + idle + iowait + irq + softirq, used, ours: ours + (server / 1_000_000) * TICKS };
}

/**
 * The share of the processors' time that others used between two moments; null: not too much, for
 * the figures to count.
 */
export function busyShare(before: Done, after: Done): number | null {
  const passed = after.passed - before.passed;
  const others = after.used - before.used - (after.ours - before.ours);
  const share = passed > 0 ? others / passed : 0;
  return share > MOST ? share : null;
}

export const describeBusy = (share: number): string =>
  `other processes used ${Math.round(share * 100)} % of the machine`;

/**
 * Why readers must not see it; null: they may. Whatever becomes a chart or a row of a README goes
 * through here.
 */
export function whyNotShown(what: string, { busy }: { readonly busy?: number | null }): string | null {
  return busy == null ? null : `${what}: ${describeBusy(busy)} while this was measured. Measure it again`;
}

/** @throws Error for what was measured on a busy machine */
export function refuseBusy(what: string, result: { readonly busy?: number | null }): void {
  const why = whyNotShown(what, result);
  if (why !== null) throw new Error(why);
}
