import type { Plant } from "./plant.ts";

/** Bugs of `runOnce`. */
export const once: readonly Plant[] = [
  {
    name: "the end of a run is not sent",
    bug: "A body returns, and its turn in Redis only ends with the lease.",
    promise: "The body returns: the next run begins when the interval is over.",
    file: "src/once/run.ts",
    replaces: "      if (!isLeft) await this.#end(lease);\n",
    by: "",
  },
  {
    name: "a late copy begins a turn",
    bug: "A command that the network delayed begins a turn after the end of its interval.",
    promise: "A turn begins for a caller that waits for it.",
    file: "lua/once/begin.lua",
    replaces: "if now > tonumber(ARGV[6]) then",
    by: "if not now then",
  },
  {
    name: "a second query is told that another one runs",
    bug: "After a lost reply the call is told that the turn it has begun is another one's, and runs no body.",
    promise: "The reply to its beginning is lost: the call asks again, and the body runs once.",
    file: "lua/once/begin.lua",
    replaces: "  return { MINE, now, begin, left }\n",
    by: "  return { HELD, now, left }\n",
  },
  {
    name: "the interval counts from the end of a run",
    bug: "The mark of a finished run says that it began when it ended.",
    promise: "Intervals count from the beginning of the last run.",
    file: "lua/once/end.lua",
    replaces: `call("SET", turn, "1d " .. begin, "PX", left)`,
    by: `call("SET", turn, "1d " .. string.format("%016.0f", now), "PX", left)`,
  },
  {
    name: "slots count from the beginning of a run",
    bug: "With `aligned` an interval is over when `every` has passed since the last run.",
    promise: "With `aligned: true` the intervals are slots of the server's clock.",
    file: "lua/once/start.lua",
    replaces: "(aligned and begin - begin % (every * 1000) or begin)",
    by: "begin",
  },
  {
    name: "the renewal of a turn renews nothing",
    bug: "A renewal is answered as done, and the turn ends in Redis at its old time.",
    promise: "The body takes longer than its lease: it continues, renewed.",
    file: "lua/once/renew.lua",
    replaces: `      redis.call("PEXPIRE", turn, ttl)\n`,
    by: "",
  },
  {
    name: "the turn of a gone caller is not withdrawn",
    bug: "A turn that has begun for a caller that waits no longer stays until its lease ends.",
    promise: "A turn that has begun for a caller that has gone is withdrawn.",
    file: "src/once/beginning.ts",
    replaces: "    this.#client.cleanup.add(this.#scripts, this.#hold, this.#hold.mayLive);\n",
    by: "",
  },
  {
    name: "a crash frees a turn that is to be kept",
    bug: `With onCrash "keep" a turn lasts as long as its lease.`,
    promise: `onCrash "keep": the next run begins when the interval is over.`,
    file: "lua/once/begin.lua",
    replaces: `if ARGV[5] == "keep" then`,
    by: "if false then",
  },
];
