import { tracingChannel } from "node:diagnostics_channel";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { type LockClient, LockError } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { trackUnhandled } from "../support/leaks.ts";
import { until } from "../support/until.ts";

// Code of the application that the library calls: it may throw, reject, return something else,
// answer twice, or never.

const parties = new Parties();
const unhandled = trackUnhandled();
afterEach(async () => {
  await parties.close();
  await unhandled.assertNone();
});
afterAll(() => unhandled.stop());

const theirs = new Error("theirs");

/** A promise of another make, which rejects, or fulfils twice. */
const thenable = (...outcomes: readonly ("fulfils" | "rejects" | "throws")[]): PromiseLike<string> => ({
  // biome-ignore lint/suspicious/noThenProperty: that is what it is about.
  then(fulfil, reject): never {
    for (const one of outcomes) {
      if (one === "fulfils") fulfil?.("value");
      if (one === "rejects") reject?.(theirs);
      if (one === "throws") throw theirs;
    }
    return undefined as never;
  },
});

/** What a body does, and what becomes of its call; undefined: it rejects with the body's error. */
const BODIES: Readonly<Record<string, readonly [body: () => unknown, value?: unknown]>> = {
  "throws at once": [
    () => {
      throw theirs;
    },
  ],
  rejects: [() => Promise.reject(theirs)],
  "returns no promise": [() => 7, 7],
  "fulfils twice": [() => thenable("fulfils", "fulfils"), "value"],
  "fulfils and rejects": [() => thenable("fulfils", "rejects"), "value"],
  "fulfils and throws": [() => thenable("fulfils", "throws"), "value"],
  "is no real promise, and throws": [() => thenable("throws")],
};

/** What takes a body. */
const DOORS: Readonly<
  Record<string, (locks: LockClient, name: string, body: () => unknown) => Promise<unknown>>
> = {
  withLock: (locks, name, body) => locks.lock(name).withLock(body),
  "withLock, confirmed": (locks, name, body) => locks.lock(name).withLock({ confirm: true }, body),
  "withLock of a multi-lock": (locks, name, body) => locks.multiLock([name, `${name}/b`]).withLock(body),
  withPermits: (locks, name, body) => locks.semaphore(name, { permits: 1 }).withPermits(1, body),
  "a reader": (locks, name, body) => locks.readWriteLock(name).read.withLock(body),
  once: (locks, name, body) =>
    locks.runOnce(name, { every: 10 }, body).then((run) => (run as { value?: unknown }).value),
  scope: (locks, _name, body) => locks.scope(body),
};

describe.each(Object.entries(DOORS))("a body of %s", (_, call) => {
  it.each(Object.entries(BODIES))(
    "%s: the call gets one answer, and nothing stays locked",
    async (_, [body, value]) => {
      const { locks } = await parties.join();
      const name = freshName();
      const called = call(locks, name, body);
      if (value === undefined) expect(await failure(called)).toBe(theirs);
      else expect(await called).toBe(value);
      expect(await locks.lock(name).isLocked()).toBe(false);
    },
  );
});

describe("runAsLeader", () => {
  it.each(Object.entries(BODIES))("%s: the call ends as its body does", async (_, [body, value]) => {
    const { locks } = await parties.join();
    const led = locks.election(freshName()).runAsLeader(body as () => Promise<void>);
    if (value === undefined) expect(await failure(led)).toBe(theirs);
    else await led;
  });
});

describe("a listener", () => {
  const LISTENERS: Readonly<Record<string, () => unknown>> = {
    "throws at once": () => {
      throw theirs;
    },
    rejects: () => Promise.reject(theirs),
    "rejects as a thenable": () => thenable("rejects", "throws"),
    "never ends": () => new Promise(() => {}),
  };

  it.each(Object.entries(LISTENERS))(
    "%s: the call goes on, and an error is reported",
    async (what, listener) => {
      const { locks } = await parties.join();
      const told: LockError[] = [];
      const name = freshName();
      let others = 0;
      locks.on("error", (error) => told.push(error));
      locks.on("acquire", listener as () => void);
      locks.on("acquire", () => others++);
      locks.once("release", listener as () => void);
      await locks.lock(name).withLock(() => {});
      if (what !== "never ends") await until(() => told.length === 2);
      const failed = { code: "LISTENER_FAILED", lockName: name, cause: theirs };
      const messages = ["acquire", "release"].map(
        (event) => `A listener for the event '${event}' of '${name}' failed: theirs.`,
      );
      expect(told.every((error) => error instanceof LockError)).toBe(true);
      expect(told).toMatchObject(what === "never ends" ? [] : [failed, failed]);
      expect(told.map(({ message }) => message)).toEqual(what === "never ends" ? [] : messages);
      expect(others, "listeners behind it").toBe(1);
      locks.off("acquire", listener as () => void);
      await locks.lock(freshName()).withLock(() => {});
      expect([told.length, others]).toEqual([what === "never ends" ? 0 : 2, 2]);
    },
  );

  it("that throws a value other than an Error: the value is the cause of one", async () => {
    const { locks } = await parties.join();
    const told: LockError[] = [];
    const thrown = [7, undefined, Object.create(null), Symbol("s"), new AggregateError([theirs], "several")];
    locks.on("error", (error) => told.push(error));
    for (const one of thrown)
      locks.once("acquire", () => {
        throw one;
      });
    await locks.lock(freshName()).withLock(() => {});
    expect(told.map(({ code, cause }) => [code, cause])).toEqual(
      thrown.map((one) => ["LISTENER_FAILED", one]),
    );
  });

  it("of two events that is removed from one still receives the other", async () => {
    const { locks } = await parties.join();
    let heard = 0;
    const listener = (): void => void heard++;
    locks.on("acquire", listener).on("release", listener).off("acquire", listener);
    await locks.lock(freshName()).withLock(() => {});
    expect(heard).toBe(1);
  });

  it.each(["throws at once", "rejects"])("for errors %s: the process gets a warning", async (what) => {
    const { locks } = await parties.join();
    const warnings: (Error & { code?: string; detail?: string })[] = [];
    const heard = (warning: Error): void => void warnings.push(warning);
    process.on("warning", heard);
    locks.on("error", LISTENERS[what] as () => void);
    locks.on("acquire", () => {
      throw new Error("first");
    });
    const name = freshName();
    await locks.lock(name).withLock(() => {});
    await until(() => warnings.length > 0);
    process.off("warning", heard);
    const message = `A listener for the event 'error' of '${name}' failed: theirs.`;
    expect(warnings).toMatchObject([{ message, code: "LISTENER_FAILED" }]);
    expect(warnings[0]?.detail).toContain(`Caused by: ${theirs.stack}`);
    await expect(unhandled.assertNone()).rejects.toThrow(`warning: HoldfastWarning: ${message}`);
  });
});

describe("a signal", () => {
  const SIGNALS: Readonly<Record<string, object>> = {
    "whose addEventListener throws": {
      addEventListener() {
        throw theirs;
      },
      removeEventListener() {},
    },
    "whose removeEventListener throws": {
      addEventListener() {},
      removeEventListener() {
        throw theirs;
      },
    },
  };

  it.each(Object.entries(SIGNALS))("%s: each call ends, and nothing stays locked", async (_, methods) => {
    const [near, far] = [await parties.join(), await parties.join()];
    const name = freshName();
    const signal = { aborted: false, reason: undefined, ...methods } as unknown as AbortSignal;
    const held = await far.locks.lock(name).lock();
    const tried = near.locks.lock(name).lock({ signal, wait: 300 });
    await failure(tried);
    await held.unlock();
    const got = near.locks.lock(name).lock({ signal, wait: 300 });
    await got.then((lease) => lease.unlock()).catch(() => {});
    await (await far.locks.lock(name).lock({ wait: 2_000 })).unlock();
  });
});

describe("a subscriber's `around`", () => {
  type Around = (body: () => unknown) => unknown;
  const AROUNDS: Readonly<Record<string, Around>> = {
    "throws at once": () => {
      throw theirs;
    },
    "throws after the body": (body) => {
      body();
      throw theirs;
    },
    "does not call the body": () => undefined,
    "calls the body twice": (body) => {
      body();
      return body();
    },
    "calls the body later": (body) => Promise.resolve().then(body),
    "returns something else": (body) => {
      body();
      return 8;
    },
  };

  it.each(Object.entries(AROUNDS))("%s: the body runs once, and its outcome counts", async (what, around) => {
    const { locks } = await parties.join();
    const { start } = tracingChannel<unknown, { around?: Around }>("holdfast:hold");
    const subscriber = (message: unknown): void => void Object.assign(message as object, { around });
    start.subscribe(subscriber);
    let runs = 0;
    const ends = (body: () => unknown): Promise<unknown> =>
      locks.lock(freshName()).withLock(() => {
        runs++;
        return body();
      });
    expect(await ends(() => 7)).toBe(7);
    const own = new Error("the body's");
    expect(await failure(ends(() => Promise.reject(own)))).toBe(own);
    start.unsubscribe(subscriber);
    expect(runs).toBe(2);
    if (what.startsWith("throws"))
      await expect(unhandled.assertNone()).rejects.toThrow("warning: Error: theirs");
  });
});
