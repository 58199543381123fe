import { afterAll, expect, it } from "vitest";
import { failure } from "../contract/observe.ts";
import { freshName, Parties } from "../support/fixture.ts";

// A signal of another kind than Node's own: what wraps one, and what is written by hand for an old runtime.

const parties = new Parties();
afterAll(parties.close);

/** Methods of a signal refuse to be called on what stands before it. */
const behindProxy = ({ signal }: AbortController): AbortSignal =>
  new Proxy(signal, {
    get(target, key) {
      const value = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });

const delegating = ({ signal }: AbortController): object => ({
  get aborted() {
    return signal.aborted;
  },
  get reason() {
    return signal.reason;
  },
  addEventListener: signal.addEventListener.bind(signal),
  removeEventListener: signal.removeEventListener.bind(signal),
});

/** Calls its listeners without an event. */
const byHand = ({ signal }: AbortController): object => {
  const listeners = new Set<() => void>();
  signal.addEventListener("abort", () => {
    for (const listener of listeners) listener();
  });
  return {
    get aborted() {
      return signal.aborted;
    },
    get reason() {
      return signal.reason;
    },
    addEventListener: (_: string, listener: () => void) => void listeners.add(listener),
    removeEventListener: (_: string, listener: () => void) => void listeners.delete(listener),
  };
};

it.each([
  ["behind a Proxy", behindProxy],
  ["that delegates", delegating],
  ["written by hand", byHand],
])("a signal %s aborts all callers that wait with it", async (_, make) => {
  const [{ locks }, other] = [await parties.join(), await parties.join()];
  const name = freshName();
  const held = await other.locks.lock(name).lock();
  const controller = new AbortController();
  const signal = make(controller) as AbortSignal;
  const waiting = [1, 2].map(() => failure(locks.lock(name).lock({ signal })));
  controller.abort("enough");
  expect(await Promise.all(waiting)).toEqual(["enough", "enough"]);
  await held.unlock();
});
