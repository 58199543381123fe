import { afterAll, afterEach } from "vitest";
import { trackUnhandled } from "./leaks.ts";

/** No test of this file may leave an unhandled rejection or a process warning. */
export function staysQuiet(): void {
  const unhandled = trackUnhandled();
  afterEach(unhandled.assertNone);
  afterAll(unhandled.stop);
}
