import { emitKeypressEvents } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import type { Listed, LockClient } from "../../index.ts";
import { showParty } from "../../inside.ts";
import { quoteWhole } from "../../util/quote.ts";
import { harmless, visible } from "../../util/visible.ts";
import { end } from "./break.ts";
import { type Call, command } from "./command.ts";
import { connect } from "./connection.ts";
import { showDuration } from "./durations.ts";
import { EXIT, UsageError } from "./exit-codes.ts";
import { LastAnswer } from "./last-answer.ts";
import { COLUMNS, cellsOf, LISTING, type ListingValues, listed, sorted } from "./listing.ts";
import type { Output } from "./output.ts";
import { operator } from "./people.ts";
import { codeOf, Signals } from "./run/signals.ts";
import { cut, table, widthOf } from "./table.ts";

const FLAGS = LISTING;
/** Between two listings, in ms. */
const PERIOD = 1_000;
/** Before the line that is selected. */
const MARK = "> ";
const keyOf = ({ kind, name }: Listed): string => `${kind} ${name}`;
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
      "holdfast top takes one pattern: quote it, or the shell puts file names in its place.",
    );
  const { locks, close } = await connect(values);
  try {
    if (process.stdout.isTTY && process.stdin.isTTY && !values.json)
      return await new Screen(locks, match, values, output).run();
    // Without a terminal: as it is now, once.
    for (const row of sorted(await all(locks, match, values), values.sort)) {
      if (values.json) output.printJson(row);
      else output.printTabbed(cellsOf(row));
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
  /** Are the keys shown, in place of the locks? */
  #isHelp = false;
  /**
   * Which one is selected, by kind and name; empty: the first one, as soon as it is drawn. It stays
   * so when it has gone.
   */
  #selected = "";
  /** Whose holders are ended if the answer is yes: as they were seen when that was asked. */
  #asked: Listed | null = null;
  #note = "";
  readonly #last = new LastAnswer();
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
    // A listing that is not answered draws nothing, and time goes on.
    const clock = setInterval(() => this.#last.colour !== null && this.#draw(), PERIOD);
    try {
      while (!signal.aborted) {
        await this.#look(signal);
        if (!signal.aborted) this.#draw();
        await pause(PERIOD, undefined, { signal }).catch(() => {});
      }
    } finally {
      clearInterval(clock);
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
      this.#took = performance.now() - since;
      this.#last.came();
    } catch (error) {
      this.#last.failed(error);
    }
  }

  /** What there is, or since when nothing is known of it. */
  get #head(): string {
    if (this.#last.colour !== null) return this.#last.sentence;
    const waited = this.#rows.filter(({ waiters }) => waiters?.length).length;
    const held = this.#rows.filter(({ holder }) => holder !== null).length;
    return `${held} held, ${waited} waited for, looked at in ${showDuration(this.#took)}, by ${this.#values.sort ?? "wait"}`;
  }

  #press(text: string, { name, ctrl }: Key): void {
    const asked = this.#asked;
    this.#note = "";
    this.#asked = null;
    if (ctrl && name === "c") this.#leaving.abort();
    else if (asked) this.#answer(asked, text);
    else if (this.#isHelp) this.#isHelp = false;
    else if (this.#isTyping) this.#type(text, name);
    else if (name === "q") this.#leaving.abort();
    else if (text === "/") this.#isTyping = true;
    else if (text === "?") this.#isHelp = true;
    else if (name === "escape") this.#filter = "";
    else if (name === "up" || name === "down") this.#move(name === "up" ? -1 : 1);
    else if (name === "b") this.#ask();
    else if (name === "s") {
      const at = ORDERS.indexOf(this.#values.sort ?? "wait");
      this.#values = { ...this.#values, sort: ORDERS[(at + 1) % ORDERS.length] };
    }
    if (!this.#leaving.signal.aborted) this.#draw();
  }

  /** In their order. */
  get #shown(): Listed[] {
    const matching = this.#rows.filter(({ name }) =>
      [name, visible(name)].some((one) => one.includes(this.#filter)),
    );
    return sorted(matching, this.#values.sort);
  }

  #move(by: 1 | -1): void {
    const shown = this.#shown;
    const at = this.#at(shown);
    const next = shown[at < 0 ? 0 : Math.min(shown.length - 1, Math.max(0, at + by))];
    if (next) this.#selected = keyOf(next);
  }

  /** Where the selected one is; -1: it has gone. */
  #at(shown: readonly Listed[]): number {
    return shown.findIndex((one) => keyOf(one) === this.#selected);
  }

  #ask(): void {
    const shown = this.#shown;
    // RACE: the list changes while somebody reaches for the key, so no other lock takes the place
    // of one that has gone.
    const one = shown[this.#at(shown)];
    if (one?.holder) this.#asked = one;
    else if (one) this.#note = `No process holds ${quoteWhole(one.name)}.`;
    else
      this.#note =
        shown.length > 0 ? "That lock has gone: select one by ↑ ↓." : "There is no lock to force-release.";
  }

  #answer(lock: Listed, text: string): void {
    if (text !== "y") {
      this.#note = "Nothing was done.";
      return;
    }
    const label = operator();
    Promise.all(lock.holders.map((holder) => end(this.#locks, lock, holder, label)))
      .then(
        (ended) =>
          ended.includes(true)
            ? `Force-released ${quoteWhole(lock.name)}.`
            : `The holder of ${quoteWhole(lock.name)} changed meanwhile: nothing was done.`,
        (error: Error) => error.message,
      )
      .then((note) => {
        this.#note = note;
        if (!this.#leaving.signal.aborted) this.#draw();
      });
  }

  /** The last line: a question, what was done, what is wrong, or the keys. */
  #foot(columns: number): string {
    const { holder = null, holders = [], name } = this.#asked ?? {};
    const others = holders.length > 1 ? ` and ${holders.length - 1} more` : "";
    if (holder) {
      const what = `${visible(name ?? "")}: ${showParty(holder)}${others}`;
      const long = " goes on until it notices. Break? y/N";
      const question = widthOf(what) + long.length > columns ? " Break? y/N" : long;
      return cut(what, columns - question.length) + question;
    }
    return cut(harmless(this.#note || keysInWords(columns)), columns);
  }

  #type(text: string, name: string | undefined): void {
    if (name === "return" || name === "escape") this.#isTyping = false;
    if (name === "escape") this.#filter = "";
    else if (name === "backspace") this.#filter = this.#filter.slice(0, -1);
    else if (name !== "return" && harmless(text) === text) this.#filter += text;
    if (this.#at(this.#shown) < 0) this.#selected = "";
  }

  #draw(): void {
    // A terminal may not know how large it is.
    const columns = process.stdout.columns || 80;
    const height = process.stdout.rows || 24;
    const shown = this.#shown;
    const { colour } = this.#last;
    const filter =
      this.#isTyping || this.#filter !== "" ? `  /${this.#filter}${this.#isTyping ? "_" : ""}` : "";
    const room = Math.max(1, height - 4);
    const [first] = shown;
    if (this.#selected === "" && first) this.#selected = keyOf(first);
    const at = this.#at(shown);
    // The selected one is on the screen.
    const from = Math.max(0, at - room + 1);
    const rows = shown.slice(from, from + room);
    const [titles = "", ...lines] = table(COLUMNS, rows, columns - MARK.length);
    const body = lines.map((line, i) => {
      const text = (from + i === at ? MARK : " ".repeat(MARK.length)) + line;
      if (colour !== null) return { style: "dim", text } as const;
      return rows[i]?.waiters?.length ? ({ style: "yellow", text } as const) : text;
    });
    const more = shown.length > room ? [`… and ${shown.length - room} more`] : [];
    const head = cut(filter === "" ? this.#head : `${filter.trim()}  ${this.#head}`, columns);
    const text = [
      colour === null ? head : ({ style: colour, text: head } as const),
      ...(this.#isHelp
        ? TOP_HELP.slice(0, height - 2).map((line) => cut(line, columns))
        : [{ style: "bold", text: " ".repeat(MARK.length) + titles } as const, ...body, ...more]),
      { style: this.#asked ? "bold" : "dim", text: this.#foot(columns) } as const,
    ];
    const screen = text.map((line) => `${this.#output.line(line)}${CLEAR_LINE}`).join("\r\n");
    process.stdout.write(`${HOME}${screen}${CLEAR_REST}`);
  }
}

interface Key {
  readonly name?: string;
  readonly ctrl?: boolean;
}

export const TOP = command(
  {
    name: "top",
    summary: "shows the locks that are held or waited for, updated every second",
    usage: ["top [flags] [pattern]"],
    examples: [
      [
        "holdfast top",
        "a live table: s sorts, / filters, b force-releases the selected lock, ? lists all keys, q quits",
      ],
      ["holdfast top 'order:*' --waited | cat", "without a terminal: printed once, with tabs"],
    ],
    flags: FLAGS,
  },
  top,
);

/** What `top` shows at "?". */
const TOP_HELP: readonly string[] = [
  "q          quit; so does Ctrl-C",
  "↑ ↓        select a lock",
  "s          sort by the longest wait, by the time held, or by name",
  "/          show only names with what is typed then; Enter ends the typing, Esc shows all again",
  "b          break: take the selected lock away from its holder, after a question",
  "?          this help; any key leaves it",
  "",
  "HELD is how long the holder has had the lock, and LEFT how much of its lease is left.",
  "WAITING PROCS counts the processes that wait, however many callers of each do. LONGEST is the longest wait.",
];

const keysInWords = (columns: number): string =>
  columns < 64
    ? "q quit  s sort  / filter  b break  ? help"
    : "q quit   s sort   / filter   ↑ ↓ select   b break its holder   ? help";
