import type { ScriptRunner } from "../redis/script-runner.ts";

/**
 * May the user of this connection run all that the scripts of a protocol run? The first acquisition of each connection
 * looks before it writes anything: an ACL that lacks one of the commands would stop a script in the middle.
 */
export class Rights {
  readonly #commands: ScriptRunner;
  #knownIn = -1;

  constructor(commands: ScriptRunner) {
    this.#commands = commands;
  }

  get isKnown(): boolean {
    return this.#knownIn === this.#commands.epoch;
  }

  /** An answer of a connection of this epoch was no error: nothing was missing. */
  learn(epoch: number): void {
    this.#knownIn = epoch;
  }

  /** A decoder: an answer that is no error tells that nothing was missing. */
  learning<T>(decode: (reply: unknown) => T): (reply: unknown) => T {
    if (this.isKnown) return decode;
    const { epoch } = this.#commands;
    return (reply) => {
      const answer = decode(reply);
      this.learn(epoch);
      return answer;
    };
  }
}
