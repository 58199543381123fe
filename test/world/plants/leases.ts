import type { Plant } from "./plant.ts";

/** Bugs of `extend()`, `close()` and multi-locks. */
export const leases: readonly Plant[] = [
  {
    name: "extend() does not tell a loss",
    bug: "The answer to an extension says that the hold is gone, and the call does not say that it is lost.",
    promise: "`extend()` of a lost lease throws LockLostError.",
    file: "src/core/lease/shared-lease.ts",
    replaces: "    if (this.loss) throw tell(thrownAt(this.loss, this.extend));\n",
    by: "",
    test: {
      project: "world",
      file: "test/world/directed/redis-failures.test.ts",
      title: "extend()",
    },
  },
  {
    name: "an explicit lease ends at its old end",
    bug: "An extension is answered, and the holder's lease ends when it would have ended without it.",
    promise: "`extend(ms)` makes the lease last at least `ms` from now.",
    file: "src/core/lease/shared-lease.ts",
    replaces: "    if (this.#end !== null) this.#end = Math.max(this.#end, sent.mono + ttl);\n",
    by: "",
  },
  {
    name: "close() takes no lease away",
    bug: "Holders that are not finished after the grace keep their leases, and nothing renews these.",
    promise: "After the grace of `close()`, `signal` aborts with `closed`, and the lock is released.",
    file: "src/runtime/close.ts",
    replaces: `    for (const lease of left) lease.lose("closed");\n`,
    by: "",
  },
  {
    name: "the members of a multi-lock are not ordered",
    bug: "A multi-lock takes its members in the caller's order.",
    promise: "No deadlocks among callers of multi-locks.",
    file: "src/locks/members.ts",
    replaces: "    .sort((a, b) => (a.key < b.key ? -1 : 1))\n",
    by: "",
  },
  {
    name: "a failed multi-lock keeps what it took",
    bug: "A multi-lock that could not get all of its members gives none of them back.",
    promise: "A failed acquisition first releases the locks that it took.",
    file: "src/runtime/acquire-all.ts",
    replaces: "    if (taken.length === 0) return;\n",
    by: "    if (taken.length >= 0) return;\n",
  },
];
