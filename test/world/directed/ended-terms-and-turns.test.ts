import { describe, expect, test } from "vitest";
import type { LockLostError, LossReason } from "../../../src/index.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";

// What test/contract/endings.ts has for locks, for the term of an election and the turn of a runOnce:
// whatever ends it, all that its caller can ask tells the same.

const LEASE = 10_000;

/** A term or a turn. */
interface Held {
  readonly signal: AbortSignal;
  readonly held: boolean;
  readonly remaining: number;
  assertHeld(): void;
}

/** `over`: gives it back, or ends its body; resolves with what that rejects with. */
interface Taken {
  readonly held: Held;
  over(): Promise<unknown>;
}

interface Door {
  readonly name: string;
  take(one: SceneProcess): Promise<Taken>;
}

const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => null,
    (error: unknown) => error,
  );

const DOORS: Readonly<Record<string, Door>> = {
  "a term": {
    name: "e",
    async take(one) {
      const term = await one.does(() => one.client.election("e", { lease: LEASE }).campaign());
      return { held: term, over: () => failure(term.resign()) };
    },
  },
  "a turn": {
    name: "job",
    take: (one) =>
      new Promise((resolve, reject) => {
        let end = (): void => {};
        const ended = new Promise<void>((done) => {
          end = done;
        });
        const options = { every: 3_600_000, lease: LEASE };
        const call: Promise<unknown> = one.does(() =>
          one.client.runOnce("job", options, (turn) => {
            const over = (): Promise<unknown> => {
              end();
              return failure(call);
            };
            resolve({ held: turn, over });
            return ended;
          }),
        );
        call.catch(reject);
      }),
  },
};

interface Ending {
  readonly reason: LossReason;
  /** Resolves with what another process has taken, if that ends it. */
  end(world: Scene, one: SceneProcess, other: SceneProcess, door: Door, held: Held): Promise<Taken | null>;
}

const ENDINGS: Readonly<Record<string, Ending>> = {
  "close()": {
    reason: "closed",
    async end(_world, one) {
      await one.does(() => one.client.close({ grace: 0 }));
      return null;
    },
  },
  "the loss of its key": {
    reason: "gone",
    async end(world, _one, _other, { name }) {
      world.redis.drop(name);
      return null;
    },
  },
  "another holder": {
    reason: "taken",
    async end(world, _one, other, door) {
      world.redis.drop(door.name);
      return door.take(other);
    },
  },
  "a blocked event loop": {
    reason: "expired",
    async end(_world, one, _other, _door, held) {
      await one.does(() => {
        one.block(LEASE + 50);
        // Before any timer could ring.
        expect([held.held, held.remaining]).toEqual([false, 0]);
      });
      return null;
    },
  },
};

describe.each(Object.entries(DOORS))("%s that is ended by", (_, door) => {
  test.each(Object.entries(ENDINGS))("%s: its signal, `held`, its end and `lost` agree", (__, ending) =>
    scene(async (world) => {
      const [one, other] = world.processes(2);
      const { held, over } = await door.take(one);
      const [lost, released] = [one.heard("lost"), one.heard("release")];
      const { signal } = held;
      const rival = await ending.end(world, one, other, door, held);
      await world.until(() => signal.aborted);
      const loss = signal.reason as LockLostError;
      expect(loss).toMatchObject({ code: "LOCK_LOST", lockName: door.name, reason: ending.reason });
      expect([held.held, held.remaining]).toEqual([false, 0]);
      expect(await over()).toBe(loss);
      expect(() => held.assertHeld()).toThrow(loss);
      expect([lost.map(({ error }) => error), released]).toEqual([[loss], []]);
      await rival?.over();
    })(),
  );
});
