import { createHash } from "node:crypto";
import { SharedLease } from "../../../src/lease/shared-lease.ts";
import { QuorumNode } from "../../../src/quorum/node.ts";
import { Quorum } from "../../../src/quorum/quorum.ts";
import { handoffLua } from "../../../src/redis/lua.generated.ts";
import { LockQueue } from "../../../src/waiting/lock-queue.ts";
import { Waiter } from "../../../src/waiting/waiter.ts";

/** Bugs that are planted to see whether the checker finds them. They live in the worker's process only. */
export const plants = {
  /** The script grants a lock without a look at its holder. */
  "grant unchecked"() {
    for (const script of ["acquire", "firstAcquire"] as const)
      patch(script, "local left\nif not value then", "value = nil\nlocal left\nif not value then");
  },

  /** A release ends the hold that it finds, not its own: a second copy of it ends the next holder's. */
  "release unowned": () =>
    patch("release", "if not value or sub(value, 38) ~= ARGV[1] then", "if not value then"),

  /** The holder believes in its lease for a lease too long. */
  "deadline late"() {
    const { left } = SharedLease.prototype;
    SharedLease.prototype.left = function (...at) {
      return left.apply(this, at) + this.terms.lease;
    };
  },

  /** Tokens are counted, and begin again when the server has forgotten the last one. */
  "tokens counted"() {
    for (const script of scripts) {
      const { lua } = handoffLua[script];
      if (lua.includes(TIME_TOKEN)) patch(script, TIME_TOKEN, "local token = before + 1");
      // Not by the common way, which knows no other tokens than the time.
      if (lua.includes(COMMON_WAY)) patch(script, COMMON_WAY, "#text == 0");
    }
  },

  /** Nobody tells a waiter why it does not get the lock: aborted calls, and those that fail, never end. */
  "no refusals"() {
    Waiter.prototype.refuse = () => false;
  },

  /** Of a kept lock: it is given up when somebody wants it, and taken again all the same. */
  "kept after a recall"() {
    const { recalled } = LockQueue.prototype;
    LockQueue.prototype.recalled = function (one, ...args) {
      const { stay } = one;
      if (stay?.state !== "idle") return recalled.call(this, one, ...args);
      this.kind.release(stay.hold, { answered() {}, failed() {} });
      setTimeout(() => recalled.call(this, one, ...args), 30);
    };
  },

  /** Of a quorum: half of the nodes, one of three or two of five, decide like a majority. */
  "half is enough"() {
    Object.defineProperty(Quorum.prototype, "majority", {
      get(this: Quorum) {
        return Math.floor(this.nodes.length / 2);
      },
    });
  },

  /** Of a quorum: a node votes as soon as it is up, whatever it has forgotten. */
  "young nodes vote"() {
    Object.defineProperty(QuorumNode.prototype, "quarantine", { get: () => 0 });
  },
};

export type Plant = keyof typeof plants;

const TIME_TOKEN = "local token = math.max(before + 1, now, 1000000000000000)";
const COMMON_WAY = "#text == 16";
const scripts = Object.keys(handoffLua) as (keyof typeof handoffLua)[];

function patch(script: keyof typeof handoffLua, sound: string, ill: string): void {
  const known: { lua: string; sha: string } = handoffLua[script];
  if (!known.lua.includes(sound))
    throw new Error(`${script}.lua has changed: "${sound}" is not there to be replaced`);
  known.lua = known.lua.replace(sound, ill);
  known.sha = createHash("sha1").update(known.lua).digest("hex");
}
