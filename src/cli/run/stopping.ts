import type { Group } from "./group.ts";

/** SIGTSTP stops the command and then this program, which alone would only stop renewing; SIGCONT lets both go on. */
export class Stopping {
  #group: Group | null = null;
  #resume: () => void = () => {};
  readonly #onStop = (): void => {
    this.#group?.signal("SIGSTOP");
    process.kill(process.pid, "SIGSTOP");
  };
  readonly #onContinue = (): void => this.#resume();

  /** RACE: made before the command is started. Until then SIGTSTP stops this program by itself, and would leave the command running. */
  constructor() {
    process.on("SIGTSTP", this.#onStop);
    process.on("SIGCONT", this.#onContinue);
  }

  /** The command runs. `resume`: has it go on, or not. */
  of(group: Group, resume: () => void): void {
    this.#group = group;
    this.#resume = resume;
  }

  end(): void {
    process.off("SIGTSTP", this.#onStop);
    process.off("SIGCONT", this.#onContinue);
  }
}
