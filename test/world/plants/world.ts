import type { Plant } from "./plant.ts";

/** Bugs of the world itself: they would hide bugs of the package. */
export const world: readonly Plant[] = [
  {
    name: "the network drops a command",
    bug: "Now and then a command does not arrive, although its connection stays open.",
    promise: "A connection delivers in order all that was sent, until a fault breaks it.",
    file: "test/world/network.ts",
    replaces: "    const served = (): void => {\n",
    by: "    if (this.#at.dice.chance(0.002)) return;\n    const served = (): void => {\n",
  },
  {
    name: "the network tells a message twice",
    bug: "A client receives each message twice.",
    promise: "A client receives a message once for each subscription.",
    file: "src/tools/testing/memory-link.ts",
    replaces: "              this.#events.message(utf8(from), utf8(message));\n",
    by:
      "              this.#events.message(utf8(from), utf8(message));\n" +
      "              this.#network.received?.(message);\n" +
      "              this.#events.message(utf8(from), utf8(message));\n",
  },
  {
    name: "a reply goes to another call",
    bug: "A reply goes to the call that was sent last.",
    promise: "Redis answers in the order of the commands.",
    file: "src/tools/testing/memory-link.ts",
    replaces: "        else call.owner.replied(call, driven(reply));",
    by: "        else call.owner.replied([...this.#calls].at(-1) ?? call, driven(reply));",
  },
  {
    name: "a subscription is acknowledged and not made",
    bug: "Redis answers a SUBSCRIBE, and sends no message.",
    promise: "After the acknowledgement of a subscription its messages arrive.",
    file: "src/tools/testing/memory-link.ts",
    replaces: "          this.#network.redis.subscribe(channel, receive);\n",
    by: "",
  },
  {
    name: "late copies are dropped",
    bug: "What a broken connection carried never arrives late.",
    promise: "A command of a broken connection may run later: see docs/protocol-faults.md.",
    file: "test/world/network.ts",
    replaces: "    else if (copies > 0) this.#strandedUntil = time.now + copies;\n",
    by: "    else if (copies > 0) this.#isServed = false;\n",
  },
  {
    name: "commands are not sent again",
    bug: "Unanswered commands of a broken connection are forgotten.",
    promise: "Pending commands are sent again, or their holds withdrawn.",
    file: "src/tools/testing/memory-link.ts",
    replaces: "      else this.#write(call);\n    }\n    for (const { ready }",
    by: "    }\n    for (const { ready }",
  },
  {
    name: "Redis remembers every script",
    bug: "SCRIPT FLUSH does nothing.",
    promise: "NOSCRIPT affects neither holders nor waiters: so it has to come.",
    file: "test/world/network.ts",
    replaces: "    this.redis.known.clear();\n",
    by: "",
  },
  {
    name: "a paused process works on",
    bug: "A process that stands still gets its events all the same.",
    promise: "What a pause costs is part of the promises: so processes have to pause.",
    file: "test/world/simulated-process.ts",
    replaces: "    this.busyUntil = Math.max(this.busyUntil, this.pausedUntil);\n",
    by: "",
  },
  {
    name: "a process computes without end",
    bug: "Each turn of the event loop causes another one.",
    promise: "A run that never ends is an error, and is found in bounded time.",
    file: "src/core/event-loop-turn.ts",
    replaces: "  isAwaited = false;\n  since = 0;\n",
    by: "  isAwaited = false;\n  since = 0;\n  awaitEnd();\n",
  },
];
