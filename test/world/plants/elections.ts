import type { Plant } from "./plant.ts";

/** Bugs of elections. */
export const elections: readonly Plant[] = [
  {
    name: "observers believe a leader for too long",
    bug: "An observer shows a leader for twice as long as its term lasts.",
    promise: "Observers show a leader at most until its term would end.",
    file: "src/election/observation.ts",
    replaces: "const span = ttl * (1 - CLOCK_DRIFT) - CLOCK_GRAIN;",
    by: "const span = ttl * 2;",
  },
  {
    name: "a message replaces the timer of a leader's end",
    bug: "An observer that was paused shows a leader whose term is over, until its next query is answered.",
    promise: "Observers show a leader at most until its term would end.",
    file: "src/election/observation.ts",
    replaces: "    if (this.#seen && !this.shown) this.#tell();\n",
    by: "",
    test: {
      project: "world",
      file: "test/world/directed/election.test.ts",
      title: "an observer is paused until after a crashed leader's term, and then reads a message first",
    },
  },
  {
    name: "a candidate that Redis has refused reports no error",
    bug: "A leader that has lost its term while Redis cannot be reached tries again in silence.",
    promise: "If Redis cannot be reached after the first term, `runAsLeader` emits `error`, and tries again.",
    file: "src/election/named-election.ts",
    replaces: "          events.report(error);\n",
    by: "",
    test: {
      project: "world",
      file: "test/world/directed/election.test.ts",
      title: "runAsLeader: Redis cannot be reached later: an error event, and the call tries again",
    },
  },
  {
    name: "a proclamation is not published",
    bug: "Observers receive no message about a new leader or its new value.",
    promise: "Observers are notified of each change by a message.",
    file: "lua/election/proclaim.lua",
    replaces: `redis.pcall("PUBLISH", ARGV[6]`,
    by: `redis.pcall("EXISTS", ARGV[6]`,
  },
  {
    name: "the end of a term is not published",
    bug: "Observers receive no message when a leader resigns.",
    promise: "Observers are notified of each change by a message.",
    file: "src/wires/election.ts",
    replaces: "        callback.answered(answer);\n        this.#tellEnd(hold.name);",
    by: "        callback.answered(answer);",
  },
  {
    name: "the renewal of a term renews nothing",
    bug: "A leader's renewal is answered as done, and the term ends in Redis at its old time.",
    promise: "One candidate leads at a time.",
    file: "lua/election/renew.lua",
    replaces: `    call("PEXPIRE", key, ttl)\n`,
    by: "",
  },
  {
    name: "a waiter does not re-check a free lock",
    bug: "A re-check that finds the lock free says that it is held.",
    promise: "The first in the queue gets the lock by a re-check after the end of a crashed holder's hold.",
    file: "lua/handoff/recheck.lua",
    replaces: "-- @include free\n",
    by: "local left\n",
  },
];
