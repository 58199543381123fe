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
    name: "a grant for nobody is kept",
    bug: "A grant for a caller that has left is not given back.",
    promise: "A waiter that times out or aborts is skipped, at no cost.",
    file: "src/runtime/lock-manager.ts",
    replaces: "unexpected: (id, key, ttl) => this.#leaveUnexpected(id, key, ttl),",
    by: "unexpected: (_id, _key, _ttl) => {},",
    test: {
      project: "world",
      file: "test/world/directed/late-copies.test.ts",
      title: "a copy of its acquire owns it after it was released: the next waiter has it at once",
    },
  },
  {
    name: "an abort of a caller of a place is ignored",
    bug: "A waiting caller of a lock whose signal aborts goes on waiting.",
    promise: "A call ends when its signal aborts.",
    file: "src/core/waiter.ts",
    replaces: "    if (!this.settled) this.#place.leave(this, reason);",
    by: "    void reason;",
  },
  {
    name: "a failed acquire of a place is not withdrawn",
    bug: "After an acquire of a lock without an answer its hold is not taken back, although Redis may have it.",
    promise: "Pending commands of a broken connection are sent again, or their holds withdrawn.",
    file: "src/core/states.ts",
    replaces: "  p.drop();\n  // A client with another format",
    by: "  // A client with another format",
  },
  {
    name: "a place whose callers have left stays queued",
    bug: "The last caller of a place in the queue leaves, and its entry stays.",
    promise: "A waiter that times out or aborts is skipped, at no cost.",
    file: "src/core/states.ts",
    replaces: "  p.hold?.asks(LEASE_TIME);\n  p.drop();\n  p.stop();",
    by: "  p.stop();",
  },
  {
    name: "a place does not look again after a gap",
    bug: "After messages may have been missed, a place in the queue sleeps on.",
    promise: "A grant message that is lost in a reconnect is found after it.",
    file: "src/core/states.ts",
    replaces: "    if (p.resource.places.isFirst(p)) p.recheck();",
    by: "",
  },
  {
    name: "a force-release before the answer is ignored",
    bug: "A force-release that is reported before the answer that took the lock does not end the hold.",
    promise: "After forceUnlock() the former holder's signal aborts with `revoked`.",
    file: "src/core/place.ts",
    replaces: "    if (this.hold) this.hold.isRevoked = true;\n    this.lose",
    by: "    this.lose",
  },
  {
    name: "silence counts as busy",
    bug: "A call whose time ends while Redis does not answer says that another caller holds the lock.",
    promise: "LOCK_TIMEOUT means that Redis reported another holder.",
    file: "src/core/redis-health.ts",
    replaces: "return this.failures > 0 || (",
    by: "return false && (",
    test: {
      project: "world",
      file: "test/world/directed/redis-failures.test.ts",
      title: "parked ones when their time is over: LOCK_UNAVAILABLE",
    },
  },
  {
    name: "the deadline is counted from the answer",
    bug: "A lease ends for its holder a lease time after the answer, not after the command was sent.",
    promise: "`held` is false before Redis lets another caller in.",
    file: "src/core/lease/hold.ts",
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
    file: "src/core/lease/hold.ts",
    replaces: "    this.endMono = Math.max(this.endMono, Math.min(this.asked.mono + span, mono + ttl));",
    by: "    this.endMono = Math.max(this.endMono, mono + ttl);",
  },
  {
    name: "an observer does not ask after a gap of its messages",
    bug: "After the subscriber's connection was lost, an observer of an election shows what it had.",
    promise: "Observers see the leader, also after messages were missed.",
    file: "src/runtime/lock-manager.ts",
    replaces: "for (const one of this.listeners) one.missed();",
    by: "",
    test: {
      project: "world",
      file: "test/world/directed/election-observers.test.ts",
      title:
        "only an observer's connection for messages breaks: it asks again, because it may have missed a message",
    },
  },
  {
    name: "a grant of any length counts",
    bug: "A grant message is believed whatever time to live it says.",
    promise: "A message that no script can have written does not prolong a lease.",
    file: "src/core/lease/hold.ts",
    replaces: "return ttl <= Math.max(this.mayLive, GRANT_WINDOW);",
    by: "return true;",
  },
  {
    name: "a failed withdrawal is not repeated",
    bug: "A hold that is not wanted is taken back once, even if that command gets no answer.",
    promise: "Pending commands of a broken connection are sent again, or their holds withdrawn.",
    file: "src/core/cleanup.ts",
    replaces: "else kind.withdraw(hold).then(done, later);",
    by: "else kind.withdraw(hold).then(done, done);",
    test: {
      project: "world",
      file: "test/world/directed/rare-races.test.ts",
      title: "the withdrawal of a failed acquire fails too: it is repeated when there is a connection again",
    },
  },
  {
    name: "a missed message is not looked for",
    bug: "After the subscriber's connection was lost, waiting callers do not re-check.",
    promise: "A grant message that is lost in a reconnect is found after it.",
    file: "src/runtime/lock-manager.ts",
    replaces: "      this.wanted.askAgain();\n      this.#lookAgain();",
    by: "      this.wanted.askAgain();",
    test: {
      project: "world",
      file: "test/world/directed/connection-failures.test.ts",
      title: "a grant message is lost in a reconnect: the process finds its grant after the reconnect",
    },
  },
  {
    name: "a listener runs in its caller's scope",
    bug: "A listener runs in the scope of the caller whose event it gets, and its calls enter that scope's locks.",
    promise: "Listeners run outside of every scope.",
    file: "src/util/detached.ts",
    replaces: "return nowhere.run(work);",
    by: "return work();",
  },
  {
    name: "an overtaken release counts as a loss",
    bug:
      "Two callers of one hold leave. The first one's command runs after the one that ended the hold, " +
      "finds nothing, and its caller is told of a loss.",
    promise: "`unlock()` resolves if nothing was lost.",
    file: "src/core/shared-hold.ts",
    replaces: "const ended = await this.ending.outcome();",
    by: "const ended = null as Awaited<ReturnType<Ending['outcome']>>;",
    test: {
      project: "world",
      file: "test/world/directed/shared-holds.test.ts",
      title: "Redis learns the script of the first release in between: not reported as lost",
    },
  },
  {
    name: "the one that has just left is not told of a loss",
    bug:
      "Two callers share permits whose key was deleted. The second one leaves in the turn in which the " +
      "first one's loss is read, and its call resolves.",
    promise: "If the key is deleted, `release()` rejects with `gone`.",
    file: "src/core/shared-hold.ts",
    replaces: "for (const leaver of leavers) this.#lostBy(leaver, reason, by);",
    by: "for (const { lease, resolve } of leavers) {\n      lease.settle();\n      resolve();\n    }",
    test: {
      project: "world",
      file: "test/world/directed/shared-holds.test.ts",
      title:
        "the other caller leaves in the turn in which the loss is read: reported as lost also to that one",
    },
  },
  {
    name: "a late grant withdraws what is being released",
    bug:
      "A grant is read after the release was sent: the hold is withdrawn before that release, which Redis " +
      "gets again because it had forgotten the script, and which finds nothing.",
    promise: "`unlock()` resolves if nothing was lost.",
    file: "src/runtime/lock-manager.ts",
    replaces: "if (this.isNamed(id)) throw new Error",
    by: "if (id === null) throw new Error",
    test: {
      project: "world",
      file: "test/world/directed/rare-races.test.ts",
      title: "a grant is read after the release was sent, whose script Redis has forgotten",
    },
  },
  {
    name: "events are told in the middle of a step",
    bug: "A listener is called before the state is what its event says, and may change it.",
    promise: "A listener may unlock, take or abort something in the statement in which it is called.",
    file: "src/api/events.ts",
    replaces: "const isOuter = !this.#isInStep;\n    this.#isInStep = true;\n    return isOuter;",
    by: "return false;",
  },
  {
    name: "a reader that comes back does not stay",
    bug: "The last reader's hold ends at the end of the turn, although another reader has entered it since.",
    promise: "A lock is given back when the last of its readers has left.",
    file: "src/core/readers.ts",
    replaces: "  #stay(): void {\n    this.settle();",
    by: "  #stay(): void {",
    test: {
      project: "world",
      file: "test/world/directed/rare-races.test.ts",
      title: "a reader comes in the turn in which the last one leaves: it has the hold, which stays",
    },
  },
  {
    name: "what is said about an ended hold is ignored",
    bug:
      "A late copy of an acquire takes the lock for no caller, and its process ignores the messages that " +
      "others wait for it.",
    promise: "A hold that no caller has is given back when another caller waits for it.",
    file: "src/runtime/grant-inbox.ts",
    replaces: 'else if (is !== "revoked" && this.#owner.isMade(hold))',
    by: 'else if (is === "grant" && this.#owner.isMade(hold))',
    test: {
      project: "world",
      file: "test/world/directed/late-copies.test.ts",
      title: "a copy of its acquire owns it after it was released: the next waiter has it at once",
    },
  },
  {
    name: "a signal is late after a pause",
    bug: "On the first line after a pause `held` is false, and the signal is not aborted.",
    promise: "On its next line `held` is false and `lease.signal` is aborted with `expired`.",
    file: "src/core/lease/shared-lease.ts",
    replaces: "  get signal(): AbortSignal {\n    this.expire();",
    by: "  get signal(): AbortSignal {",
    test: {
      project: "world",
      file: "test/world/directed/read-write.test.ts",
      title: "a reader's lease ends by itself, while others continue in the same hold",
    },
  },
  {
    name: "a local hand-off has a token that was not reserved",
    bug: "Two holders have the same token, after the server's clock has gone back.",
    promise: "Tokens grow with each change of holder.",
    file: "src/core/next.ts",
    replaces: "hold.passes < Math.min(hold.reserved, hold.mayPass)",
    by: "hold.passes < hold.mayPass",
    test: {
      project: "world",
      file: "test/world/directed/rare-races.test.ts",
      title: "it gets a token that no other caller gets",
    },
  },
  {
    name: "any number is a token",
    bug: "A reply that belongs to another command is believed, if it is a number.",
    promise: "At most one caller holds the lock.",
    file: "src/redis/codec.ts",
    replaces: "  token: [FIRST_TOKEN, MOST],",
    by: "  token: [0, MOST],",
    test: {
      project: "default*",
      file: "test/lock/replies-of-other-commands.test.ts",
      title: "no caller gets it by the reply to another command",
    },
  },
  {
    name: "a lease that has run out is told as taken",
    bug: "An answer that is read after the deadline says why a lease was lost.",
    promise: "After its deadline a lease was lost because it expired.",
    file: "src/core/lease/shared-lease.ts",
    replaces: 'const reason = (how === "gone" || how === "taken") && this.left() <= 0 ? "expired" : how;',
    by: "const reason = how;",
    test: {
      project: "world",
      file: "test/world/directed/late-answers.test.ts",
      title: "after the deadline leads to a loss by expiry",
    },
  },
  {
    name: "an old answer answers a new call",
    bug: "A call that came while others waited gets their answer, from before it came.",
    promise: "A call says that a lock is busy only if another caller had it after the call.",
    file: "src/core/place.ts",
    replaces: "else if (health.saidAt < caller.since && !this.isHeldHere(mono)) {",
    by: "else if (false) {",
    test: {
      project: "world",
      file: "test/world/directed/rare-races.test.ts",
      title: "a call comes while others wait here and Redis is silent",
    },
  },
  {
    name: "a release between the answer and the sleep is missed",
    bug:
      "For locks whose message wakes all: a message that comes before the answer to a try which Redis " +
      "ran before it is forgotten.",
    promise: "An unlock wakes every waiting process, and one gets the lock.",
    file: "src/core/try-place.ts",
    replaces:
      "    else if (this.#heard !== wakes.count && !wakes.rests) this.ask();\n" +
      "    else {\n" +
      "      this.#sleepFor(SLEEPING, sleep(answer.ttl, null, false));\n" +
      "      if (this.#heard !== wakes.count) this.wakeBefore(wakes.restsUntil);\n",
    by: "    else {\n      this.#sleepFor(SLEEPING, sleep(answer.ttl, null, false));\n",
    test: {
      project: "world",
      file: "test/world/directed/rare-races.test.ts",
      title: "its release is read before the answer to a try that found it held: the waiter tries again",
    },
  },
  {
    name: "readers go on while a writer waits",
    bug: "Redis says that a writer waits, and new readers enter the hold of their process all the same.",
    promise: "A writer is not starved: late readers enter for 25 ms after it has begun to wait.",
    file: "src/core/readers.ts",
    replaces: "    if (isOurs && !waits) this.asked = sent;",
    by: "    if (isOurs) this.asked = sent;",
    test: {
      project: "world",
      file: "test/world/directed/read-write.test.ts",
      title: "late readers enter while no caller waits, and for 25 ms after a writer has begun to wait",
    },
  },
  {
    name: "units of a lost permit are handed on here",
    bug: "The permits of a caller that has lost them go to the next caller of its process at once.",
    promise: "No permit is inside after a loss: the lost caller may still be working.",
    file: "src/core/pool.ts",
    replaces: "    this.free += unitsOf(lease.terms);\n    this.giveBack();\n  }\n}",
    by: "    this.free += unitsOf(lease.terms);\n    setTimeout(() => this.giveBack());\n  }\n}",
    test: {
      project: "world",
      file: "test/world/directed/listeners-of-losses.test.ts",
      title: "lost permits are not handed off locally, also if a listener of the loss asks for them",
    },
  },
  {
    name: "the end of a process releases nothing",
    bug: "A process that calls `process.exit()` keeps the locks that it has cached.",
    promise: "A process that calls `process.exit()` releases the locks that it has unlocked or cached.",
    file: "src/core/stays.ts",
    replaces: "for (const stays of lingering) stays.endAll();",
    by: "",
  },
  {
    name: "the event loop gets no turn",
    bug: "Callers that come and go without a round trip keep the event loop from turning.",
    promise: "Other work of the process goes on beside callers of one lock.",
    file: "src/core/event-loop-turn.ts",
    replaces: "if (since > 0) return mono - since >= TURNS_TIME;",
    by: "if (since > 0) return false;",
    test: {
      project: "default*",
      file: "test/unit/event-loop-turn.test.ts",
      title: "a turn is used up after a time in which callers come and go, and the next one is new",
    },
  },
  {
    name: "calls of one scope wait for each other",
    bug: "Of two calls of one scope for one lock, the second one waits for its own scope.",
    promise: "In the scope of a body, taking its lock again enters it.",
    file: "src/locks/scope-wait.ts",
    replaces: "const shares = request.reentrant && enter;",
    by: "const shares = request.reentrant && enter && false;",
  },
  {
    name: "a recall is ignored",
    bug: "A process keeps a cached lock that nobody uses, although another process waits for it.",
    promise: "Another process wants the lock: it is released in the next turn of the event loop.",
    file: "src/core/place.ts",
    replaces: "    sendAtTurnEnd(() => this.#giveBackAlone());\n",
    by: "",
  },
  {
    name: "local hand-offs do not end",
    bug: "Callers of one process hand the lock on among themselves, although another process waits.",
    promise: "After another process has begun to wait, at most 16 more local hand-offs, for at most 25 ms.",
    file: "src/core/next.ts",
    replaces:
      "  return hold.turns < passes && mono - Math.max(hold.wantedAt ?? 0, hold.ownedAt) < PASS_TIME;",
    by: "  return passes > 0;",
  },
  {
    name: "close() leaves a waiter",
    bug: "The callers that wait when the client closes are not refused.",
    promise: "`locks.close()` rejects waiters with ClientClosedError.",
    file: "src/runtime/lock-manager.ts",
    replaces: "    this.refuseAll((name) => new ClientClosedError(name));\n",
    by: "",
  },
];
