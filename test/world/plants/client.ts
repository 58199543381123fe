import type { Plant } from "./plant.ts";

/** Bugs of the client. */
export const client: readonly Plant[] = [
  {
    name: "the watchdog renews at the end",
    bug: "The watchdog renews a lease once in its length, when it is over.",
    promise: "A holder keeps the lock while its process lives and reaches Redis.",
    file: "src/defaults.ts",
    replaces: "export const RENEWALS_PER_LEASE = 3;",
    by: "export const RENEWALS_PER_LEASE = 1;",
  },
  {
    name: "NOSCRIPT is an error",
    bug: "A command whose script Redis has forgotten fails, instead of being sent again as text.",
    promise: "NOSCRIPT affects neither holders nor waiters.",
    file: "src/redis/script-runner.ts",
    replaces: "if (isUnknown && !call.isOver) {",
    by: "if (false) {",
  },
  {
    name: "no re-check after the subscription",
    bug: "A waiter whose command was sent before its subscription was acknowledged does not re-check after it.",
    promise: "A grant that was published before the subscription is found at once.",
    file: "src/engine/acquisition.ts",
    replaces: "if (!isHeard && channel.isHeard) this.lookAgain();",
    by: "",
  },
  {
    name: "a grant for nobody is kept",
    bug: "A grant for a caller that has left is not given back.",
    promise: "A waiter that times out or aborts is skipped, at no cost.",
    file: "src/engine/lock-manager.ts",
    replaces: "unexpected: (id, key, ttl) => this.#leaveUnexpected(id, key, ttl),",
    by: "unexpected: (_id, _key, _ttl) => {},",
  },
  {
    name: "an abort is ignored",
    bug: "A waiting caller whose signal aborts goes on waiting.",
    promise: "A call ends when its signal aborts.",
    file: "src/engine/waiter.ts",
    replaces: "    this.group?.leave(this, reason);",
    by: "    void reason;",
  },
  {
    name: "a failed acquire is not withdrawn",
    bug: "After an acquire without an answer its hold is not taken back, although Redis may have it.",
    promise: "Pending commands of a broken connection are sent again, or their holds withdrawn.",
    file: "src/engine/acquisition.ts",
    replaces: "    else {\n      context.leave(kind, hold);\n      // A client with another format",
    by: "    else {\n      // A client with another format",
  },
  {
    name: "a force-release before the answer is ignored",
    bug: "A force-release that is reported before the answer that took the lock does not end the hold.",
    promise: "After forceUnlock() the former holder's signal aborts with `revoked`.",
    file: "src/engine/acquisition.ts",
    replaces: "if (this.hold?.id === id) this.hold.isRevoked = true;",
    by: "",
  },
  {
    name: "silence counts as busy",
    bug: "A call whose time ends while Redis does not answer says that another caller holds the lock.",
    promise: "LOCK_TIMEOUT means that Redis reported another holder.",
    file: "src/engine/redis-health.ts",
    replaces: "return this.failures > 0 || (",
    by: "return false && (",
  },
  {
    name: "the deadline is counted from the answer",
    bug: "A lease ends for its holder a lease time after the answer, not after the command was sent.",
    promise: "`held` is false before Redis lets another caller in.",
    file: "src/engine/lease/hold.ts",
    replaces:
      "    this.endMono = Math.max(this.endMono, Math.min(this.asked.mono + span, mono + ttl));\n" +
      "    this.endWall = Math.max(this.endWall, Math.min(this.asked.wall + span, wall + ttl));",
    by:
      "    this.endMono = Math.max(this.endMono, mono + ttl);\n" +
      "    this.endWall = Math.max(this.endWall, wall + ttl);",
  },
  {
    name: "the monotonic deadline is counted from the answer",
    bug: "On the monotonic clock, a lease ends for its holder a lease time after the answer.",
    promise: "`held` is false before Redis lets another caller in.",
    file: "src/engine/lease/hold.ts",
    replaces: "    this.endMono = Math.max(this.endMono, Math.min(this.asked.mono + span, mono + ttl));",
    by: "    this.endMono = Math.max(this.endMono, mono + ttl);",
  },
  {
    name: "no re-check after a gap of the subscription",
    bug: "After the subscriber's connection was lost, waiters do not re-check.",
    promise: "A grant message that is lost in a reconnect is found after it.",
    file: "src/engine/lock-manager.ts",
    replaces: "for (const one of this.listeners) one.missed();",
    by: "",
  },
  {
    name: "a grant of any length counts",
    bug: "A grant message is believed whatever time to live it says.",
    promise: "A message that no script can have written does not prolong a lease.",
    file: "src/engine/lease/hold.ts",
    replaces: "return ttl <= Math.max(this.mayLive, GRANT_WINDOW);",
    by: "return true;",
  },
  {
    name: "a failed withdrawal is not repeated",
    bug: "A hold that is not wanted is taken back once, even if that command gets no answer.",
    promise: "Pending commands of a broken connection are sent again, or their holds withdrawn.",
    file: "src/engine/cleanup.ts",
    replaces: "else kind.withdraw(hold).then(done, later);",
    by: "else kind.withdraw(hold).then(done, done);",
  },
];
