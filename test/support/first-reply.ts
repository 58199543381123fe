import type { Plugin } from "vitest/config";

/** In tests these answers may take as long as a busy machine needs, in ms. */
export const PATIENT_REPLY = 30_000;

/** The first answer of a call, and the one that says which caller holds the lock. */
const USUAL = ["FIRST_REPLY = 500;", "HOLDER_REPLY = 100;"] as const;

/**
 * A plugin of Vite for tests in real time. A `tryLock()` that may take 500 ms fails on a machine that
 * gives this process no time for so long, and the error of a wait that is over does not name the
 * holder. Tests of these times have the usual numbers again:
 *
 * @example
 * vi.mock("../../src/defaults.ts", async (all) => ({ ...(await all<object>()), FIRST_REPLY: 500 }));
 */
export const patientReplies: Plugin = {
  name: "patient replies",
  enforce: "pre",
  transform(code, id) {
    if (!id.endsWith("/src/defaults.ts")) return null;
    return USUAL.reduce((text, usual) => {
      if (!text.includes(usual)) throw new Error(`src/defaults.ts has no ${usual}`);
      return text.replace(usual, `${usual.split(" ")[0]} = ${PATIENT_REPLY};`);
    }, code);
  },
};
