import { expect, it } from "vitest";
import { isLockLost, LockLostError, LockUnavailableError } from "../../src/index.ts";

const loss = new LockLostError("x", "expired");
const suppressed = (error: unknown, other: unknown) =>
  Object.assign(new Error("s"), { name: "SuppressedError", error, suppressed: other });
const circular = Object.assign(new Error("circular"), { cause: null as unknown });
circular.cause = circular;

it.each([
  ["a loss", loss],
  ["its cause", new Error("could not sell", { cause: loss })],
  ["the cause of its cause", new Error("a", { cause: new Error("b", { cause: loss }) })],
  ["one of several errors", new AggregateError([new Error("a"), loss])],
  ["an error while another one was thrown", suppressed(loss, new Error("a"))],
  ["an error that another one has suppressed", suppressed(new Error("a"), loss)],
  ["a loss of another copy of the package", { code: "LOCK_LOST" }],
])("isLockLost finds %s", (_, error) => {
  expect(isLockLost(error)).toBe(true);
});

it.each([
  ["another error of this package", new LockUnavailableError("x", "no answer")],
  ["an error with another cause", new Error("a", { cause: new Error("b") })],
  ["several other errors", new AggregateError([new Error("a")])],
  ["an error that is its own cause", circular],
  ["null", null],
  ["a text", "LOCK_LOST"],
])("isLockLost does not find %s", (_, error) => {
  expect(isLockLost(error)).toBe(false);
});
