import { codes, handoffLua as lua } from "../redis/lua.generated.ts";
import type { Script } from "../redis/script.ts";
import { channelOf, enqueue, type Held, idOf, renewal, take, ticketOf, waiting } from "./held.ts";
import type { Memory, Reply, Run } from "./memory.ts";

const { OWNER, MINE, HELD, GONE, RELEASED, TAKEN, BLOCKED } = codes;

/**
 * The scripts of locks that are handed on, which elections have too: their leader holds one.
 */
export function handOff(memory: Memory): [Script, Run][] {
  const heldAt = (lock = ""): Held | undefined => memory.get<Held>(lock);
  const waits = (queue = ""): number => (waiting(memory, queue).length > 0 ? 1 : 0);

  function own(lock: string, hold: string, ttl: number, passes: number, since?: number, told = 0): Reply {
    const token = memory.token(passes);
    memory.keep(lock, ttl, { hold, token, since: since ?? token, told });
    return token;
  }

  /** Gives the lock to the first that waits, and returns it; for the caller's own hold nothing is done but that. */
  function grantNext(lock: string, queue: string, since?: number, me?: unknown): string | undefined {
    const [, ttl, passes, ...words] = take(memory, queue)?.split(" ") ?? [];
    if (ttl === undefined) return undefined;
    const hold = words.join(" ");
    if (hold !== me) {
      const token = own(lock, hold, Number(ttl), Number(passes), since);
      memory.publish(
        channelOf(hold),
        `grant ${token} ${memory.now} ${ttl} ${waits(queue)} ${idOf(hold)} ${lock}`,
      );
    }
    return hold;
  }

  function handOver(lock: string, queue: string, since?: number): void {
    memory.drop(lock);
    grantNext(lock, queue, since);
  }

  const recall = ({ hold }: Held, lock: string, nonce: unknown): number =>
    memory.publish(channelOf(hold), `recall ${idOf(hold)} ${nonce || "-"} ${lock}`);

  const mine = (held: Held, lease: number, queue: string): Reply => {
    const left = memory.raise(held, lease);
    return [MINE, memory.now, held.token, left, waits(queue), held.told];
  };

  /** What became of a hold that does not own the lock any more: it ended by its own command, or was taken away. */
  const ended = (held: Held | undefined, token: number): Reply =>
    held ? (held.since <= token && token < held.token ? RELEASED : TAKEN) : [GONE, memory.lastToken];

  /** A free lock goes to the first that waits before it goes to the caller. */
  function acquire(
    [lock = "", queue = "", , , before]: readonly string[],
    argv: readonly (string | number)[],
    isAgain = false,
  ): Reply {
    const [hold, lease, , passes, entry, told, after, nonce] = argv;
    let held = heldAt(lock);
    if (held && held.hold === hold) return mine(held, Number(lease), queue);
    if (before !== undefined && heldAt(before)?.hold !== after) {
      if (nonce && held?.told === 2) recall(held, lock, nonce);
      return [BLOCKED, memory.now];
    }
    if (!held && (grantNext(lock, queue, undefined, hold) ?? hold) === hold) {
      const token = own(lock, String(hold), Number(lease), Number(passes), undefined, Number(told));
      return [OWNER, memory.now, token, waits(queue)];
    }
    held = heldAt(lock);
    const digit = held?.told ?? 0;
    const place = entry && (!nonce || digit === 2) ? enqueue(memory, queue, String(entry)) : -1;
    if (held && (nonce ? digit === 2 : (place === 0 || isAgain) && digit > 0)) recall(held, lock, nonce);
    return [HELD, memory.now, memory.left(held), place, digit];
  }

  /** It never queues. */
  const recheck: Run = (keys, [hold = "", lease = "", passes = "", entry = "", , , told = ""]) => {
    const [lock, queue = ""] = keys;
    const isThere = heldAt(lock)?.hold === hold || waiting(memory, queue).includes(String(entry));
    return isThere ? acquire(keys, [hold, lease, 0, passes, entry, told], true) : [GONE, memory.now];
  };

  const release: Run = ([lock = "", queue = ""], [hold, token]) => {
    const held = heldAt(lock);
    if (held?.hold !== hold) return ended(held, Number(token));
    handOver(lock, queue, held?.since);
    return RELEASED;
  };

  const inspect: Run = ([lock = "", queue = ""], [most, question]) => {
    const held = heldAt(lock);
    if (held?.told === 2 && question) recall(held, lock, question);
    const shown = held ? [held.hold, held.token, memory.left(held), held.told] : ["", 0, 0, 0];
    const queued = waiting(memory, queue).slice(0, Number(most));
    const waiters = queued.flatMap((entry): Reply[] => [
      entry.split(" ").slice(3).join(" "),
      ticketOf(memory, queue, entry),
    ]);
    return [memory.now, ...shown, ...waiters];
  };

  const forceRelease: Run = ([lock = "", queue = ""], [label, token]) => {
    const held = heldAt(lock);
    if (!held || (token && Number(token) !== held.token)) return 0;
    handOver(lock, queue);
    memory.publish(channelOf(held.hold), `revoked ${idOf(held.hold)} ${lock}${label ? ` ${label}` : ""}`);
    return 1;
  };

  return [
    [lua.acquire, (keys, argv) => acquire(keys, argv)],
    [lua.firstAcquire, (keys, argv) => acquire(keys, argv)],
    [lua.recheck, recheck],
    [lua.firstRecheck, recheck],
    [lua.release, release],
    [
      lua.yield,
      ([lock = "", queue = ""], [old, token, hold = "", lease, passes, entry = "", told]) => {
        const held = heldAt(lock);
        if (!held || held.hold !== old) return ended(held, Number(token));
        enqueue(memory, queue, String(entry));
        memory.drop(lock);
        if (grantNext(lock, queue, held.since, hold) === hold) {
          const next = own(lock, String(hold), Number(lease), Number(passes), held.since, Number(told));
          return [OWNER, memory.now, next, waits(queue)];
        }
        return [HELD, memory.now, memory.left(heldAt(lock)), waiting(memory, queue).indexOf(String(entry))];
      },
    ],
    [
      lua.leave,
      ([lock = "", queue = ""], [hold, entry]) => {
        take(memory, queue, String(entry));
        const held = heldAt(lock);
        if (!held || idOf(held.hold) !== hold) return GONE;
        handOver(lock, queue, held?.since);
        return RELEASED;
      },
    ],
    [
      lua.releaseAt,
      ([lock = ""], [hold, token, until, nobody]) => {
        const held = heldAt(lock);
        if (!held || held.hold !== hold) return ended(held, Number(token));
        const left = Math.ceil((Number(until) - memory.now) / 1_000);
        if (left <= 0) return HELD;
        memory.keep(lock, left, { ...held, hold: String(nobody), token: held.token + 1, told: 0 });
        return RELEASED;
      },
    ],
    [
      lua.renewStays,
      ([, ...keys], argv) => {
        memory.lastToken = Math.max(memory.lastToken, memory.now);
        const answers = keys.flatMap((lock, i): Reply[] => {
          if (i % 2 === 1) return [];
          const [hold, ttl, told] = argv.slice((3 * i) / 2);
          const held = heldAt(lock);
          if (held?.hold === hold && held && told !== "-") held.told = Number(told);
          const isOurs = held?.hold === hold;
          return [
            ...renewal(memory, held, [hold, ttl]),
            isOurs ? waits(keys[i + 1]) : 0,
            isOurs ? (held?.told ?? 0) : 0,
          ];
        });
        return [memory.now, ...answers];
      },
    ],
    [
      lua.releaseStays,
      ([, ...keys], argv) => {
        const answers = Array.from({ length: argv.length / 2 }, (_, i) =>
          release(keys.slice(3 * i), argv.slice(2 * i)),
        );
        return [memory.lastToken, ...answers.map((answer) => (typeof answer === "number" ? answer : GONE))];
      },
    ],
    [lua.inspect, inspect],
    [lua.forceRelease, forceRelease],
  ];
}
