import type { Plugin } from "vitest/config";

/** In tests the first answer of a call may take as long as a busy machine needs, in ms. */
export const PATIENT_REPLY = 30_000;

const USUAL = "FIRST_REPLY = 500;";

/**
 * A plugin of Vite for tests in real time. A `tryLock()` that may take 500 ms fails on a machine that
 * gives this process no time for so long. Tests of that time have the usual number again:
 *
 * @example
 * vi.mock("../../src/defaults.ts", async (all) => ({ ...(await all<object>()), FIRST_REPLY: 500 }));
 */
export const patientReplies: Plugin = {
  name: "patient replies",
  enforce: "pre",
  transform(code, id) {
    if (!id.endsWith("/src/defaults.ts")) return null;
    if (!code.includes(USUAL)) throw new Error(`src/defaults.ts has no ${USUAL}`);
    return code.replace(USUAL, `FIRST_REPLY = ${PATIENT_REPLY};`);
  },
};
