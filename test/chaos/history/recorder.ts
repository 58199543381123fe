import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { micros, type Told } from "./events.ts";

/**
 * Writes what happens to a file of its own, one line of JSON an event. Every line is one write to
 * the system before the next statement runs, so what a killed process has told is there.
 */
export class Recorder {
  readonly #file: number;
  readonly by: string;

  constructor(folder: string, by: string) {
    this.by = by;
    this.#file = openSync(join(folder, `${by}.jsonl`), "a");
  }

  /** `at`: when it happened, if that was before this call. */
  tell(told: Told, at = micros()): void {
    writeSync(this.#file, `${JSON.stringify({ at, by: this.by, ...told })}\n`);
  }
}
