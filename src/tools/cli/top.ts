import { emitKeypressEvents } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import type { Listed } from "../../index.ts";
import { showParty } from "../../inside.ts";
import { quoteWhole } from "../../util/quote.ts";
import { harmless, visible } from "../../util/visible.ts";
import { LeaseLengths } from "../ui/lease-lengths.ts";
import { isWaited } from "../ui/survey.ts";
import { onlyOf } from "./args.ts";
import { end } from "./break.ts";
import { type Call, command } from "./command.ts";
import { type Connected, connect } from "./connection.ts";
import { DeadlockReport, type KnownDeadlocks, matching, sayDeadlocks } from "./deadlocks.ts";
import { showDuration } from "./durations.ts";
import { EXIT } from "./exit-codes.ts";
import { Health, healthReport } from "./health.ts";
import { linesOf } from "./inspect.ts";
import { LastAnswer } from "./last-answer.ts";
import { COLUMNS, cellsOf, LISTING, type ListingValues, listed, sorted } from "./listing.ts";
import type { Output, Painted } from "./output.ts";
import { operator } from "./people.ts";
import { codeOf, Signals } from "./run/signals.ts";
import { cut, table, widthOf, wrapped } from "./table.ts";

const FLAGS = LISTING;
/** Between two listings, in ms. */
const PERIOD = 1_000;
/** Before the selected line. */
const MARK = "> ";
/** Before the further lines of a text. */
const INDENT = "  ";
const keyOf = ({ kind, name }: Pick<Listed, "kind" | "name">): string => `${kind} ${name}`;
const ORDERS = ["wait", "held", "name"] as const;

const [ENTER, LEAVE, HOME, CLEAR_LINE, CLEAR_REST] = [
  "\x1b[?1049h\x1b[?25l",
  "\x1b[?25h\x1b[?1049l",
  "\x1b[H",
  "\x1b[K",
  "\x1b[J",
];

async function top({ values, positionals, rest, output }: Call<typeof FLAGS>): Promise<number> {
  const match = onlyOf(
    positionals,
    rest,
    "holdfast top takes one pattern: quote it, or the shell puts file names in its place.",
  );
  const connected = await connect(values);
  try {
    if (process.stdout.isTTY && process.stdin.isTTY && !values.json)
      return await new Screen(connected, match, values, output).run();
    // Without a terminal: print the present state once.
    const sayHealth = healthReport(connected, output);
    const deadlocks = new DeadlockReport(connected, matching(match, values.kind)).once();
    for (const row of sorted(await all(connected, match, values), values.sort)) {
      if (values.json) output.printJson(row);
      else output.printTabbed(cellsOf(row));
    }
    await sayHealth();
    sayDeadlocks(await deadlocks, output);
    return EXIT.ok;
  } finally {
    await connected.close();
  }
}

/** `found` is called with the number of locks so far. */
async function all(
  { locks }: Connected,
  match: string | undefined,
  values: ListingValues,
  signal?: AbortSignal,
  found: (count: number) => void = () => {},
) {
  const rows: Listed[] = [];
  for await (const lock of listed(locks, match, values, signal)) found(rows.push(lock));
  return rows;
}

/** The table, redrawn after every listing and at each key. */
class Screen {
  readonly #connected: Connected;
  readonly #deadlocks: DeadlockReport;
  readonly #health: Health;
  readonly #match: string | undefined;
  readonly #output: Output;
  readonly #leaving = new AbortController();
  #values: ListingValues;
  #rows: readonly Listed[] = [];
  /** How many locks the listing under way has found. */
  #found = 0;
  #known: KnownDeadlocks = { found: [], missing: null };
  #filter = "";
  /** Is the filter being typed? */
  #isTyping = false;
  /** Are the keys shown, instead of the locks? */
  #isHelp = false;
  /** Is the selected lock shown with its queue, instead of all locks? */
  #isOne = false;
  /**
   * The selected lock, by kind and name; empty: the first one, as soon as it is drawn. Stays
   * selected when the lock has gone.
   */
  #selected = "";
  /**
   * The lock whose holders are force-released when its name is typed: as they were when that was
   * asked. And what is typed so far.
   */
  #asked: Listed | null = null;
  #typed = "";
  #note = "";
  readonly #last = new LastAnswer();
  readonly #lengths = new LeaseLengths();
  #took = 0;

  constructor(connected: Connected, match: string | undefined, values: ListingValues, output: Output) {
    this.#connected = connected;
    this.#deadlocks = new DeadlockReport(connected, matching(match, values.kind));
    this.#health = new Health(connected);
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
    this.#draw();
    // A listing under way draws nothing, and time goes on.
    const clock = setInterval(() => {
      if (this.#last.isAwaited || this.#last.colour !== null || this.#health.slowness !== null) this.#draw();
    }, PERIOD);
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
      void this.#health.refresh();
      const deadlocks = this.#deadlocks.look();
      this.#rows = await all(this.#connected, this.#match, this.#values, signal, (count) => {
        this.#found = count;
      });
      this.#took = performance.now() - since;
      const holders = this.#rows.flatMap((lock) => lock.holders);
      this.#lengths.see(holders, since, since + this.#took);
      this.#known = await deadlocks;
      this.#last.came();
      this.#health.answered();
    } catch (error) {
      this.#last.failed(error);
    }
  }

  /** The number of locks, or since when they are unknown. */
  get #head(): string {
    if (this.#last.colour !== null) return this.#last.sentence;
    if (this.#last.isAwaited) return `Reading the locks …${this.#found > 0 ? ` ${this.#found} so far` : ""}`;
    const waited = this.#rows.filter(isWaited).length;
    const held = this.#rows.filter(({ holder }) => holder !== null).length;
    return `${held} held, ${waited} waited for, listed in ${showDuration(this.#took)}, by ${this.#values.sort ?? "wait"}`;
  }

  #press(text: string, { name, ctrl }: Key): void {
    this.#note = "";
    if (ctrl && name === "c") this.#leaving.abort();
    else if (this.#asked) this.#answer(this.#asked, text, name);
    else if (this.#isHelp) this.#isHelp = false;
    else if (this.#isTyping) this.#type(text, name);
    else if (name === "q") this.#leaving.abort();
    else if (text === "/") this.#isTyping = true;
    else if (text === "?") this.#isHelp = true;
    else if (name === "return") this.#isOne = !this.#isOne;
    else if (name === "escape" && this.#isOne) this.#isOne = false;
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

  /** The place of the selected one; -1: it has gone. */
  #at(shown: readonly Listed[]): number {
    return shown.findIndex((one) => keyOf(one) === this.#selected);
  }

  #ask(): void {
    const shown = this.#shown;
    // RACE: the list may change while a person reaches for the key, so no other lock takes the
    // place of one that has gone.
    const one = shown[this.#at(shown)];
    this.#typed = "";
    if (one?.holder) this.#asked = one;
    else if (one) this.#note = `No process holds ${quoteWhole(one.name)}.`;
    else
      this.#note =
        shown.length > 0 ? "That lock has gone: select one by ↑ ↓." : "There is no lock to force-release.";
  }

  #answer(lock: Listed, text: string, key: string | undefined): void {
    if (key !== "return" && key !== "escape") {
      if (key === "backspace") this.#typed = this.#typed.slice(0, -1);
      else if (harmless(text) === text) this.#typed += text;
      return;
    }
    this.#asked = null;
    if (key === "escape" || ![lock.name, visible(lock.name)].includes(this.#typed)) {
      this.#note = key === "escape" ? "Nothing was done." : "That is not the name: nothing was done.";
      return;
    }
    const label = operator();
    Promise.all(lock.holders.map((holder) => end(this.#connected.locks, lock, holder, label)))
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

  /** The last line: a question, a result, a problem, or the keys. */
  #foot(columns: number): string {
    const { holder = null, holders = [], name } = this.#asked ?? {};
    const others = holders.length > 1 ? ` and ${holders.length - 1} more` : "";
    if (holder) {
      const what = `${visible(name ?? "")}: ${showParty(holder)}${others}`;
      const short = ` Type its name to force-release it: ${this.#typed}_`;
      const long = ` goes on until it notices.${short}`;
      const question = widthOf(what) + widthOf(long) > columns ? short : long;
      return cut(cut(what, Math.max(NAME, columns - widthOf(question))) + question, columns);
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

  /** What is wrong with Redis; nothing of one that does not answer, as the first line says why. */
  #troubles(columns: number): Painted[] {
    if (this.#last.colour === "red") return [];
    return this.#health.facts.flatMap(({ isBad, text }) =>
      wrapped(text, columns, INDENT).map(
        (line) => ({ style: isBad ? "red" : "yellow", text: line }) as const,
      ),
    );
  }

  /** The first deadlock; nothing where all is well. At most half of the screen. */
  #alarms(columns: number, height: number): Painted[] {
    const { found, missing } = this.#known;
    const [first] = found;
    const text = first?.text ?? missing;
    if (text === null) return [];
    const style = first === undefined || this.#last.colour !== null ? "dim" : "red";
    const more = found.length > 1 ? ` … and ${found.length - 1} more` : "";
    const all = wrapped(text + more, columns, INDENT);
    const most = Math.max(1, Math.floor(height / 2));
    const shown = all.length > most ? [...all.slice(0, most - 1), INDENT + (more.trim() || "…")] : all;
    return shown.map((text) => ({ style, text }));
  }

  /** The lock with its holders, its queue, and its deadlocks. */
  #one(lock: Listed | undefined, columns: number, height: number): (string | Painted)[] {
    if (!lock) return ["  That lock has gone."];
    const isDim = this.#last.colour !== null;
    const stuck = this.#known.found.filter(({ locks }) => locks.some((one) => keyOf(one) === keyOf(lock)));
    const told = stuck.flatMap(({ links }) => [
      "In a deadlock:",
      ...links.flatMap((link) => wrapped(INDENT + link, columns, INDENT + INDENT)),
    ]);
    const lines = [...linesOf(lock, this.#lengths), ...told.map((text) => ({ style: "red", text }) as const)];
    const all = lines.slice(0, lines.length > height ? height - 1 : height).map((line) => {
      const { style, text } = typeof line === "string" ? { style: null, text: line } : line;
      const shown = cut(text, columns);
      if (isDim) return { style: "dim", text: shown } as const;
      return style === null ? shown : { style, text: shown };
    });
    return lines.length > height ? [...all, `  … and ${lines.length - all.length} more`] : all;
  }

  #draw(): void {
    // A terminal may not know its size.
    const columns = process.stdout.columns || 80;
    const height = process.stdout.rows || 24;
    const shown = this.#shown;
    const { colour } = this.#last;
    const filter =
      this.#isTyping || this.#filter !== "" ? `  /${this.#filter}${this.#isTyping ? "_" : ""}` : "";
    const alarms = [...this.#troubles(columns), ...this.#alarms(columns, height)];
    const room = Math.max(1, height - 4 - alarms.length);
    const [first] = shown;
    if (this.#selected === "" && first) this.#selected = keyOf(first);
    const at = this.#at(shown);
    // Keep the selected line on the screen.
    const from = Math.max(0, at - room + 1);
    const rows = shown.slice(from, from + room);
    const [titles = "", ...lines] = table(COLUMNS, rows, columns - MARK.length);
    const body = lines.map((line, i) => {
      const text = (from + i === at ? MARK : " ".repeat(MARK.length)) + line;
      if (colour !== null) return { style: "dim", text } as const;
      const row = rows[i];
      return row && isWaited(row) ? ({ style: "yellow", text } as const) : text;
    });
    const more = shown.length > room ? [`… and ${shown.length - room} more`] : [];
    const head = cut(filter === "" ? this.#head : `${filter.trim()}  ${this.#head}`, columns);
    const text = [
      colour === null ? head : ({ style: colour, text: head } as const),
      ...(this.#isHelp
        ? TOP_HELP.slice(0, height - 2).map((line) => cut(line, columns))
        : this.#isOne
          ? this.#one(shown[at], columns, height - 2)
          : [
              ...alarms,
              { style: "bold", text: " ".repeat(MARK.length) + titles } as const,
              ...body,
              ...more,
            ]),
      { style: this.#asked ? "bold" : "dim", text: this.#foot(columns) } as const,
    ];
    const screen = text.map((line) => `${this.#output.line(line)}${CLEAR_LINE}`).join("\r\n");
    process.stdout.write(`${HOME}${screen}${CLEAR_REST}`);
  }
}

/** The fewest columns of a question in which its lock is named. */
const NAME = 24;

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
        "a live table: Enter shows the queue of the selected lock, b force-releases it, ? lists all keys",
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
  "Enter      show the selected lock with all its holders and its queue; again: all locks",
  "b          force-release the selected lock, after its name is typed",
  "?          this help; any key leaves it",
  "",
  "HELD is how long the holder has had the lock, and LEFT how much of its lease is left.",
  "WAITING PROCS counts the processes that wait, however many callers of each do. LONGEST is the longest wait.",
];

const keysInWords = (columns: number): string =>
  columns < 64
    ? "q quit  s sort  / filter  Enter queue  ? help"
    : "q quit   s sort   / filter   ↑ ↓ select   Enter its queue   b force-release   ? help";
