import type { Recorder } from "../history/recorder.ts";
import { explain } from "./explain.ts";

/** Records what nobody handles, and lets the process live on. */
export function watchTroubles(recorder: Recorder): void {
  const unhandled = (error: unknown): void =>
    recorder.tell({ is: "unhandled", error: (error instanceof Error && error.stack) || String(error) });
  process.on("unhandledRejection", unhandled);
  process.on("uncaughtException", unhandled);
  process.on("warning", (warning) => recorder.tell({ is: "trouble", error: explain(warning) }));
}
