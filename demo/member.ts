import type { Job, Report, Shift } from "./crew.ts";

/** Tells the demo; crew.ts hears it. */
export function report(what: Report): void {
  process.send?.(what);
}

/** The demo is gone. Nobody wants these sales any more. */
function abandon(): never {
  process.exit(1);
}

/** Makes this process a member of a crew: it does its work, and ends by itself. What goes wrong is told. */
export function workAs<T extends Job | Shift>(work: (job: T) => Promise<void>): void {
  // Ctrl-C reaches the whole process group; the demo ends its workers itself.
  process.on("SIGINT", () => {});
  process.on("disconnect", abandon);
  if (!process.connected) abandon();
  const { HOLDFAST_DEMO_JOB = "" } = process.env;
  work(JSON.parse(HOLDFAST_DEMO_JOB)).then(leave, (error: unknown) => {
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.send?.({ is: "failed", why } satisfies Report, abandon);
  });
}

function leave(): void {
  process.off("disconnect", abandon);
  process.disconnect();
}
