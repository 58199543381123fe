import { connectionLua } from "../../../src/redis/client-lua.generated.ts";
import {
  countedLua,
  electionLua,
  handoffLua,
  onceLua,
  rememberLua,
} from "../../../src/redis/lua.generated.ts";
import { redissonLua } from "../../../src/wires/redisson-lua.generated.ts";
import { spinLua } from "../../../src/wires/spin-lua.generated.ts";
import { entries, nameOf, owners } from "../ownership.ts";
import type { Run } from "../run.ts";
import type { Refusal, RefusingRedis } from "./refusing-redis.ts";

const SCRIPTS = [
  ...[connectionLua, countedLua, electionLua, handoffLua, onceLua, rememberLua],
  ...[redissonLua, spinLua],
];

/** The Redis of a scene: what happens to it, and what it has. Names are as in "lock:a". */
export class SceneRedis {
  readonly #run: Run;
  readonly #cutAll: (ms: number) => void;
  /** The locks whose keys it has lost. */
  readonly dropped: string[] = [];

  /** `cutAll`: breaks all connections for so many ms. */
  constructor(run: Run, cutAll: (ms: number) => void) {
    this.#run = run;
    this.#cutAll = cutAll;
    this.learnScripts();
  }

  get #redis(): RefusingRedis {
    return this.#run.server.redis as RefusingRedis;
  }

  // ---- faults

  pause(ms: number): void {
    this.#run.server.pause(ms);
  }

  /** Sets its clock back; forward if `ms` is negative. */
  setBack(ms: number): void {
    this.#run.server.setBack(ms);
  }

  flushScripts(): void {
    this.#run.server.forgetScripts();
  }

  /** Another client has sent all scripts, or all but those with this in their names. */
  learnScripts({ except = "" } = {}): void {
    for (const { name, sha } of SCRIPTS.flatMap((scripts) => Object.values(scripts)))
      if (except === "" || !name.includes(except)) this.#redis.known.add(sha);
  }

  /**
   * Deletes the key of this lock, or another one of its keys, such as ":queue".
   * @throws if there is none: the fault would not happen.
   */
  drop(name: string, part = ""): void {
    const dropped = this.keys(name).filter((key) => key.endsWith(`}${part}`));
    if (dropped.length === 0) throw new Error(`there is no key of ${name}${part} to delete`);
    for (const key of dropped) this.#redis.keys.delete(key);
    this.dropped.push(name);
    this.#run.story.tell("Redis", `loses ${dropped.join(", ")}`);
  }

  /**
   * Deletes a key of a kind that shares its keys with other libraries. Returns its text, if it is one.
   * @throws if there is none.
   */
  dropKey(key: string): string | null {
    const kept = this.#redis.find(key);
    if (!kept) throw new Error(`there is no key ${key} to delete`);
    this.#redis.keys.delete(key);
    this.#run.story.tell("Redis", `loses ${key}`);
    return kept.type === "string" ? kept.value : null;
  }

  /** FLUSHALL. */
  dropAll(): void {
    this.#run.story.tell("Redis", "loses all keys");
    this.dropped.push(...owners(this.#run).map(({ name }) => name));
    this.#redis.keys.clear();
  }

  /** Is away for so long, with all connections cut; it keeps its keys, unless it restarts empty. */
  restart(ms: number, { isEmpty = false } = {}): void {
    this.flushScripts();
    this.#cutAll(ms);
    if (isEmpty) this.dropAll();
  }

  /** From now on; null: not any more. */
  refuse(refusal: Refusal | null): void {
    this.#run.story.tell("Redis", refusal ? `refuses: ${refusal}` : "refuses nothing");
    this.#redis.refusal = refusal;
  }

  /** Another program writes a text under the key of this lock, or of another one of its keys. */
  overwrite(key: string, value: string): void {
    this.#run.story.tell("Redis", `${key} is overwritten`);
    this.#redis.keys.set(key, { type: "string", value, until: Number.POSITIVE_INFINITY });
  }

  /** The same with a hash. */
  overwriteByHash(key: string): void {
    this.#run.story.tell("Redis", `${key} becomes a hash`);
    const value = new Map([["a field", "of another program"]]);
    this.#redis.keys.set(key, { type: "hash", value, until: Number.POSITIVE_INFINITY });
  }

  /** Another program publishes a message. */
  publish(channel: string, message: string): void {
    this.#run.story.tell("Redis", `a message on ${channel}: ${message}`);
    this.#redis.publish(channel, message);
  }

  /** ms until this key ends; 0: there is none. */
  remaining(key: string): number {
    const kept = this.#redis.find(key);
    return kept ? kept.until - this.#redis.ms : 0;
  }

  /** The hash under this key; empty: there is none. */
  hash(key: string): ReadonlyMap<string, string> {
    const kept = this.#redis.find(key);
    return kept?.type === "hash" ? kept.value : new Map();
  }

  /** How often it has run this command, by scripts too. */
  calls(command: string): number {
    return this.#redis.calls.get(command) ?? 0;
  }

  // ---- what it has

  keys(name: string): string[] {
    return [...this.#redis.keys.keys()].filter((key) => this.#redis.find(key) && key.includes(`{${name}}`));
  }

  /** The numbers of the processes that have a hold of this. */
  holders(name: string): number[] {
    return owners(this.#run).flatMap((one) => (one.name === name ? [one.process] : []));
  }

  /** The ids of these holds. */
  holds(name: string): string[] {
    return owners(this.#run).flatMap((one) => (one.name === name ? [one.hold] : []));
  }

  /** The numbers of the processes in the queue of this, the first one first. */
  queue(name: string): number[] {
    return entries(this.#run).flatMap((one) => (one.name === name ? [one.process] : []));
  }

  /** The entries of that queue. */
  places(name: string): string[] {
    return entries(this.#run).flatMap((one) => (one.name === name ? [one.entry] : []));
  }

  /** ms until the hold of this ends; 0: there is none. */
  left(name: string): number {
    const ends = owners(this.#run).flatMap((one) => (one.name === name ? [one.until] : []));
    return Math.max(0, ...ends.map((end) => end - this.#redis.ms));
  }

  /** What it has of this, but for the time that is left. */
  state(name: string): unknown {
    return this.keys(name).map((key) => {
      const kept = this.#redis.find(key);
      if (kept?.type === "string") return [key, kept.value];
      if (kept?.type === "hash") return [key, [...kept.value]];
      if (kept?.type === "stream") throw new Error("no script has a stream");
      return [key, kept?.value.members.map((member) => [member, kept.value.score(member)])];
    });
  }

  /** The lock's key: see nameOf. */
  key(name: string): string {
    const found = this.keys(name).find((key) => nameOf(key) === name);
    if (found === undefined) throw new Error(`${name} has no key`);
    return found;
  }
}
