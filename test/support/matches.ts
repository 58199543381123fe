import type { Script } from "../../src/redis/script.ts";

/**
 * Decides whether a command is meant: `command[0]` is its name in lower case, the rest its
 * arguments (latin1).
 */
export type Match = (command: string[]) => boolean;

/** Matches commands by name: `proxy.dropReply(named("eval", "evalsha"))`. */
export function named(...names: string[]): Match {
  return ([name = ""]) => names.includes(name);
}

/** Matches a run of one of these scripts, by its hash or by its text. */
export function sends(...scripts: readonly Pick<Script, "sha" | "lua">[]): Match {
  const texts = new Set(scripts.flatMap(({ sha, lua }) => [sha, lua]));
  return ([, text = ""]) => texts.has(text);
}

/**
 * Matches the n-th matching command, counted from 1: `proxy.dropReply(nth(3, named("evalsha")))`.
 */
export function nth(n: number, match: Match = () => true): Match {
  let seen = 0;
  return (command) => match(command) && ++seen === n;
}

const SUBSCRIBE = named("subscribe", "psubscribe", "ssubscribe");
const SET_UP = named("hello", "auth", "client", "select", "info", "cluster", "readonly", "command");

/** Matches the commands that turn a connection into a subscriber's. */
export const subscribes: Match = (command) => SUBSCRIBE(command);

/** Matches the commands that a client sends by itself when it connects. */
export const setsUp: Match = (command) => SET_UP(command);
