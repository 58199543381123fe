import { emitKeypressEvents } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import type { Listed, LockClient } from "../index.ts";
import { type Call, command } from "./command.ts";
import { connect } from "./connection.ts";
import { showDuration } from "./durations.ts";
import { EXIT, UsageError } from "./exit-codes.ts";
import { COLUMNS, LISTING, type ListingValues, listed, sorted } from "./listing.ts";
import { type Output, visible } from "./output.ts";
import { codeOf } from "./run/command.ts";
import { Signals } from "./run/signals.ts";
import { table } from "./table.ts";

const FLAGS = LISTING;
/** Between two listings, in ms. */
const PERIOD = 1_000;
const ORDERS = ["wait", "held", "name"] as const;

const [ENTER, LEAVE, HOME, CLEAR_LINE, CLEAR_REST] = [
  "\x1b[?1049h\x1b[?25l",
  "\x1b[?25h\x1b[?1049l",
  "\x1b[H",
  "\x1b[K",
  "\x1b[J",
];

async function top({ values, positionals, rest, output }: Call<typeof FLAGS>): Promise<number> {
  const [match, further] = positionals;
  if (further !== undefined || rest !== null)
    throw new UsageError(
      "holdfast top takes one pattern; quote it, or the shell puts file names in its place.",
    );
  const { locks, close } = await connect(values);
  try {
    if (process.stdout.isTTY && process.stdin.isTTY && !values.json)
      return await new Screen(locks, match, values, output).run();
    // Without a terminal: as it is now, once.
    for (const row of sorted(await all(locks, match, values), values.sort)) {
      if (values.json) output.printJson(row);
      else output.print(COLUMNS.map(({ show }) => visible(show(row))).join("\t"));
    }
    return EXIT.ok;
  } finally {
    await close();
  }
}

async function all(
  locks: LockClient,
  match: string | undefined,
  values: ListingValues,
  signal?: AbortSignal,
) {
  const found: Listed[] = [];
  for await (const lock of listed(locks, match, values, signal)) found.push(lock);
  return found;
}

/** The table, drawn anew whenever the locks have been looked at, and at each key. */
class Screen {
  readonly #locks: LockClient;
  readonly #match: string | undefined;
  readonly #output: Output;
  readonly #leaving = new AbortController();
  #values: ListingValues;
  #rows: readonly Listed[] = [];
  #filter = "";
  /** Is what is typed the filter? */
  #isTyping = false;
  #trouble = "";
  #took = 0;

  constructor(locks: LockClient, match: string | undefined, values: ListingValues, output: Output) {
    this.#locks = locks;
    this.#match = match;
    this.#values = values;
    this.#output = output;
  }

  async run(): Promise<number> {
    const { stdin, stdout } = process;
    const signals = new Signals();
    const { signal } = this.#leaving;
    signals.to(() => this.#leaving.abort());
    emitKeypressEvents(stdin);
    const onKey = (text: string | undefined, key: Key) => this.#press(text ?? "", key);
    const draw = () => this.#draw();
    stdin.setRawMode(true);
    stdin.on("keypress", onKey);
    stdout.on("resize", draw);
    stdout.write(ENTER);
    try {
      while (!signal.aborted) {
        await this.#look(signal);
        if (!signal.aborted) this.#draw();
        await pause(PERIOD, undefined, { signal }).catch(() => {});
      }
    } finally {
      stdout.write(LEAVE);
      stdout.off("resize", draw);
      stdin.off("keypress", onKey);
      stdin.setRawMode(false);
      stdin.pause();
      signals.stop();
    }
    return signals.received ? codeOf(signals.received) : EXIT.ok;
  }

  async #look(signal: AbortSignal): Promise<void> {
    const since = performance.now();
    try {
      this.#rows = await all(this.#locks, this.#match, this.#values, signal);
      this.#trouble = "";
    } catch (error) {
      this.#trouble = error instanceof Error ? error.message : String(error);
    }
    this.#took = performance.now() - since;
  }

  #press(text: string, { name, ctrl }: Key): void {
    if (ctrl && name === "c") this.#leaving.abort();
    else if (this.#isTyping) this.#type(text, name);
    else if (name === "q") this.#leaving.abort();
    else if (text === "/") this.#isTyping = true;
    else if (name === "escape") this.#filter = "";
    else if (name === "s") {
      const at = ORDERS.indexOf(this.#values.sort ?? "wait");
      this.#values = { ...this.#values, sort: ORDERS[(at + 1) % ORDERS.length] };
    }
    if (!this.#leaving.signal.aborted) this.#draw();
  }

  #type(text: string, name: string | undefined): void {
    if (name === "return" || name === "escape") this.#isTyping = false;
    if (name === "escape") this.#filter = "";
    else if (name === "backspace") this.#filter = this.#filter.slice(0, -1);
    else if (name !== "return" && visible(text) === text) this.#filter += text;
  }

  #draw(): void {
    // A terminal may not know how large it is.
    const columns = process.stdout.columns || 80;
    const height = process.stdout.rows || 24;
    const shown = sorted(
      this.#rows.filter(({ name }) => name.includes(this.#filter)),
      this.#values.sort,
    );
    const waited = this.#rows.filter(({ waiters }) => waiters.length > 0).length;
    const held = this.#rows.filter(({ holder }) => holder !== null).length;
    const head = `${held} held, ${waited} waited for, looked at in ${showDuration(this.#took)}, by ${this.#values.sort ?? "wait"}`;
    const filter =
      this.#isTyping || this.#filter !== "" ? `  /${this.#filter}${this.#isTyping ? "_" : ""}` : "";
    const last =
      this.#trouble === ""
        ? "q quit   s sort   / filter   holdfast break <name> ends a holder"
        : this.#trouble;
    const room = Math.max(1, height - 4);
    const [titles = "", ...lines] = table(COLUMNS, shown.slice(0, room), columns);
    const more = shown.length > room ? [`… and ${shown.length - room} more`] : [];
    const text = [
      visible(head + filter).slice(0, columns),
      this.#output.paint("bold", titles),
      ...lines.map((line, i) =>
        (shown[i]?.waiters.length ?? 0) > 0 ? this.#output.paint("yellow", line) : line,
      ),
      ...more,
      this.#output.paint("dim", visible(last).slice(0, columns)),
    ];
    process.stdout.write(`${HOME}${text.map((line) => `${line}${CLEAR_LINE}`).join("\r\n")}${CLEAR_REST}`);
  }
}

interface Key {
  readonly name?: string;
  readonly ctrl?: boolean;
}

export const TOP = command(
  {
    name: "top",
    summary: "shows the locks as they are held and waited for, again each second",
    usage: ["top [flags] [pattern]"],
    examples: [
      ["holdfast top", "a table that is drawn anew each second: s sorts, / filters, q ends"],
      ["holdfast top 'order:*' --waited | cat", "without a terminal: as it is now, once, with tabs"],
    ],
    flags: FLAGS,
  },
  top,
);
