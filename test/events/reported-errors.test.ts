import { expect, it } from "vitest";
import { Events } from "../../src/api/events.ts";
import { LockError, LockLostError, LockUnavailableError } from "../../src/index.ts";

// What a client tells its listeners for `error`, whatever has failed.

it("every reported error is a LockError", () => {
  const events = new Events("host:1:0123456789abcdef");
  const told: LockError[] = [];
  events.on("error", (error: LockError) => told.push(error));
  const lost = new LockLostError("a", "gone");
  const cause = new Error("from elsewhere");
  events.report(lost);
  events.report(new AggregateError([lost, cause]));
  events.report("no error at all");
  expect(told.every((error) => error instanceof LockError)).toBe(true);
  expect([told[0], told[1]]).toEqual([lost, lost]);
  expect(told.slice(2)).toMatchObject([
    { code: "LOCK_UNAVAILABLE", lockName: null, cause },
    { code: "LOCK_UNAVAILABLE", lockName: null, cause: "no error at all" },
  ]);
  expect(told[2]).toBeInstanceOf(LockUnavailableError);
  expect(told[2]?.message).toMatch(/from elsewhere\.$/);
});
