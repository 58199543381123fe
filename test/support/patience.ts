/**
 * How long, in ms, a question to a holder waits for its answer in tests that say so: a busy machine
 * may need the usual 50 for anything, and a test that needs no answer should not wait.
 */
export const patience = { keeper: 3_000 };

/**
 * The package's numbers with that time, and with others replaced. The answer comes by a
 * subscription: tests in real time wait patiently for its first question.
 *
 * @example
 * vi.mock("../../src/defaults.ts", async (all) =>
 *   (await import("../support/patience.ts")).patient(all),
 * );
 */
export async function patient(
  all: () => Promise<unknown>,
  others: Record<string, number> = {},
): Promise<object> {
  const numbers = (await all()) as object;
  const { keeper } = Object.getOwnPropertyDescriptors({
    get keeper() {
      return patience.keeper;
    },
  });
  return Object.defineProperty({ ...numbers, ...others }, "KEEPER_REPLY", keeper);
}
