import type { Call } from "../../../src/redis/call.ts";
import type { Reply } from "../../../src/tools/testing/keyspace.ts";
import type { Step } from "../network.ts";

/** A script by its name without its folder, such as "release"; see FORMS. */
export type Command = string | ((call: Call) => boolean);
/** What happens to a process, a connection or Redis at a moment. Callers act after it. */
type Fault = () => void;

/** Scripts that do the same: the first one of a client, and one for several holds. */
const FORMS: Readonly<Record<string, string>> = {
  "first-acquire": "acquire",
  "first-take": "take",
  "first-recheck": "recheck",
  "renew-stays": "renew",
};

const nameOf = ({ script: { name } }: Call): string => {
  const last = name.slice(name.indexOf("/") + 1);
  return FORMS[last] ?? last;
};
const isNoScript = (reply: Reply | Error | null): boolean =>
  reply instanceof Error && reply.message.startsWith("NOSCRIPT");

/** A moment that a test waits for, or at which it causes a fault. */
interface Moment {
  readonly what: string;
  isIt(step: Step, call: Call, reply: Reply | Error | null): boolean;
  strike(): void;
}

/** The moments of a process that a test has named, and that have not come. */
export class Moments {
  /** How many scripts were sent. */
  sent = 0;
  readonly #process: string;
  readonly #resume: (go: () => void) => void;
  readonly #expected = new Set<Moment>();
  readonly #messages = new Set<{ readonly what: string; readonly word: string; strike(): void }>();

  /** `resume`: calls something in an event of the test. */
  constructor(process: string, resume: (go: () => void) => void) {
    this.#process = process;
    this.#resume = resume;
  }

  /** Of the next such command. */
  on(command: Command) {
    const isMeant = typeof command === "string" ? (call: Call) => nameOf(call) === command : command;
    const name = typeof command === "string" ? command : "a command";
    const at =
      (what: string, step: Step, isIt: (reply: Reply | Error | null) => boolean = () => true) =>
      (fault: Fault = () => {}): Promise<void> =>
        new Promise((struck) => {
          const moment: Moment = {
            what: `${this.#process}: ${name} ${what}`,
            isIt: (now, call, reply) => now === step && isMeant(call) && isIt(reply),
            strike: () => {
              this.#expected.delete(moment);
              fault();
              this.#resume(struck);
            },
          };
          this.#expected.add(moment);
        });
    return {
      /** Its process has sent it: it is on its way. */
      sent: at("is sent", "sent"),
      /** Redis has run it, and its reply and its messages are on their way. */
      executed: at("is executed", "executed", (reply) => !(reply instanceof Error)),
      /** Redis does not know its script. */
      unknown: at("finds no script", "executed", isNoScript),
      /** Redis has refused it with an error. */
      refused: at("is refused", "executed", (reply) => reply instanceof Error && !isNoScript(reply)),
      /** Its reply has arrived. */
      answered: at("is answered", "answered"),
    };
  }

  /** A message that begins with this word has been read. */
  onMessage(word: string, fault: Fault = () => {}): Promise<void> {
    return new Promise((struck) => {
      const moment = {
        what: `${this.#process}: a message "${word}"`,
        word,
        strike: () => {
          this.#messages.delete(moment);
          fault();
          this.#resume(struck);
        },
      };
      this.#messages.add(moment);
    });
  }

  step(step: Step, call: Call, reply: Reply | Error | null): void {
    if (step === "sent") this.sent++;
    for (const moment of [...this.#expected]) if (moment.isIt(step, call, reply)) moment.strike();
  }

  message(text: string): void {
    for (const moment of [...this.#messages]) if (text.split(" ")[0] === moment.word) moment.strike();
  }

  /** What has not come. */
  get missing(): string[] {
    return [...this.#expected, ...this.#messages].map(({ what }) => what);
  }
}
