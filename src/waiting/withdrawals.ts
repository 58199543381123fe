import { type Alarms, CallAlarm } from "../alarms.ts";
import type { Transport } from "../scripts/transport.ts";
import type { LockKind } from "./kind.ts";
import { backOff } from "./rules.ts";

/**
 * R3: what became of a hold is unknown (its command was rejected, timed out, or its caller has gone), or a grant came
 * for a hold that nobody waits with any more. It is left, again and again, until Redis has answered, until it cannot
 * exist any more, or until the connection is closed for good. Nobody waits for this but `close()`.
 */
export class Withdrawals {
  readonly #commands: Transport;
  readonly #alarms: Alarms;
  #pending = 0;
  #whenIdle: (() => void)[] = [];

  constructor(commands: Transport, alarms: Alarms) {
    this.#commands = commands;
    this.#alarms = alarms;
  }

  /** `lease`: ms that the hold may live after its command is executed, which may be a reply timeout from now. */
  add(kind: LockKind, hold: { readonly id: string; readonly name: string }, lease: number): void {
    const until = performance.now() + this.#commands.replyTimeout + lease;
    let failures = 0;
    const done = this.begin();
    const later = (): void => {
      const at = performance.now() + backOff(failures++);
      if (this.#commands.ended || at > until) done();
      else this.#alarms.set(new CallAlarm(attempt), at);
    };
    const attempt = (): void => {
      // While the connection is away, tries would only pile up in it.
      if (failures > 0 && this.#commands.isAway) later();
      else kind.withdraw(hold).then(done, later);
    };
    attempt();
  }

  /** Something is under way that `idle()` waits for. Returns how to end it. */
  begin(): () => void {
    this.#pending++;
    return () => {
      this.#pending--;
      if (this.#pending === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    };
  }

  /** Resolves when nothing is left to withdraw or to release. */
  idle(): Promise<void> {
    if (this.#pending === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }
}
