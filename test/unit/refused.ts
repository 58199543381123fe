import { expect } from "vitest";

/** Every method takes anything here, as it does from JavaScript. */
export type Loose<T> = {
  [K in keyof T]: T[K] extends (...args: never[]) => infer R ? (...args: unknown[]) => R : T[K];
};

/** The call is refused with exactly this error, whether it throws or rejects. */
export async function refused(
  call: () => unknown,
  kind: typeof TypeError | typeof RangeError,
  message: string,
) {
  let error: unknown;
  try {
    await call();
  } catch (thrown) {
    error = thrown;
  }
  expect(String(error)).toBe(`${kind.name}: ${message}`);
  expect(error).toBeInstanceOf(kind);
}
