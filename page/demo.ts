import { type Done, type Knob, LATENCIES, type ShownDemo } from "../src/tools/ui/shown.ts";
import { post, tell } from "./actions.ts";
import { at, h, say } from "./dom.ts";

/** What a knob does, and where that is seen. */
const KNOBS = {
  crash: [
    "Crash",
    "The process dies while it holds its lock: in Now the lease left runs out within 10 s, and then the first waiter has the lock.",
  ],
  pause: [
    "Pause",
    "The process stands still, as in a long garbage collection: another one gets its lock after the lease, and after Resume the lock's timeline says “lost”.",
  ],
  cut: [
    "Cut",
    "The process loses Redis: its lease is not renewed and ends, and after Mend it reports the loss in the lock's timeline.",
  ],
  hang: [
    "Hang",
    "Its work under the lock does not end, while its lease is renewed: after 10 s the line on top names the long wait.",
  ],
  latency: [
    "Late answers",
    "Redis answers all processes so much later: in Now and in Wait times waits grow, and at 3000 ms long holders lose their leases of 10 s.",
  ],
  deadlock: [
    "Make a deadlock",
    "Two processes take two locks in opposite order: after some 10 s the line on top and Blocked prove it.",
  ],
} as const;

/** The knobs of a process, each with the one that turns it back. */
const PAIRS = [
  ["crash", "start", "Start again", "isDead"],
  ["pause", "resume", "Resume", "isPaused"],
  ["cut", "mend", "Mend", "isCut"],
  ["hang", "let go", "Let go", "isHung"],
] as const;

type Process = ShownDemo["fleet"][number];

const panel = at("demo");
const rows = new Map<string, Row>();
const list = h("ul", { class: "fleet" });
const latencies = LATENCIES.map((ms) =>
  knob(`${ms} ms`, ms === 0 ? "No late answers" : `Answers ${ms} ms late`, "latency", () => ({
    knob: "latency",
    ms,
  })),
);
let isDeadlocked = false;
const deadlock = knob("Make a deadlock", "", "deadlock", () => ({
  knob: isDeadlocked ? "end deadlock" : "deadlock",
}));

/** The fleet and its knobs, above each view; nothing if this page is no demo. */
export function showDemo(demo: ShownDemo | null): void {
  if (!demo) return;
  if (panel.hidden) build();
  for (const process of demo.fleet) {
    const row = rows.get(process.name) ?? new Row(process.name);
    if (!rows.has(process.name)) list.append(row.element);
    rows.set(process.name, row);
    row.show(process);
  }
  for (const [i, ms] of LATENCIES.entries())
    latencies[i]?.setAttribute("aria-pressed", String(ms === demo.lateBy));
  isDeadlocked = demo.isDeadlocked;
  say(deadlock, isDeadlocked ? "End the deadlock" : "Make a deadlock");
}

function build(): void {
  const hint = h("p", { class: "note" }, "Rest on a knob to read what it shows, and where.");
  const explain = ({ target }: Event): void => {
    const about = target instanceof HTMLButtonElement ? target.getAttribute("aria-describedby") : null;
    if (about !== null) say(hint, at(about).textContent ?? "");
  };
  const explained = Object.entries(KNOBS).map(([id, [, does]]) => h("p", { id: `knob-${id}` }, does));
  const late = { class: "knobs", role: "group", "aria-label": KNOBS.latency[0] };
  panel.append(
    h(
      "details",
      { open: true, focusin: explain, pointerover: explain },
      h(
        "summary",
        {},
        h("strong", {}, "Demo:"),
        " these processes and their Redis are in the memory of one program. Turn a knob, and watch.",
      ),
      list,
      h("p", { class: "tools" }, h("span", late, "Answers late by ", ...latencies), deadlock),
      hint,
      h("div", { class: "unseen" }, ...explained),
    ),
  );
  panel.hidden = false;
}

class Row {
  readonly element: HTMLElement;
  readonly #where = h("small");
  readonly #state = h("span", { class: "state" });
  readonly #buttons: readonly HTMLButtonElement[];
  #now: Process | null = null;

  constructor(name: string) {
    this.#buttons = PAIRS.map(([on, off, , is]) =>
      knob("", "", on, () => ({ knob: this.#now?.[is] ? off : on, process: name })),
    );
    this.element = h(
      "li",
      {},
      h("span", { class: "person" }, h("b", {}, name), this.#where),
      this.#state,
      h("span", { class: "knobs" }, ...this.#buttons),
    );
  }

  show(process: Process): void {
    this.#now = process;
    const { name, where, work, isDead } = process;
    say(this.#where, `process ${where.slice(where.indexOf(":") + 1)}`);
    const state = stateOf(process);
    say(this.#state, state ?? work);
    this.#state.classList.toggle("bad", state !== null);
    for (const [i, [on, , back, is]] of PAIRS.entries()) {
      const button = this.#buttons[i];
      if (!button) continue;
      const label = process[is] ? back : KNOBS[on][0];
      say(button, label);
      button.setAttribute("aria-label", `${label} ${name}`);
      button.dataset.on = String(process[is]);
      // Not disabled: that would take the keyboard's place away.
      button.setAttribute("aria-disabled", String((isDead && is !== "isDead") || process.next === on));
    }
  }
}

const NEXT = {
  crash: "dies at its next turn",
  pause: "stands still at its next turn",
  cut: "loses Redis at its next turn",
};

function stateOf({ isDead, isPaused, isCut, isHung, next }: Process): string | null {
  if (isDead) return "dead";
  const states = [isPaused && "stands still", isCut && "has no Redis", isHung && "hangs", next && NEXT[next]];
  return states.filter((state) => state).join(", ") || null;
}

function knob(text: string, label: string, about: keyof typeof KNOBS, wanted: () => Knob): HTMLButtonElement {
  const button = h(
    "button",
    {
      type: "button",
      "aria-describedby": `knob-${about}`,
      ...(label !== "" && { "aria-label": label }),
      click: () => {
        if (button.getAttribute("aria-disabled") !== "true") void turn(wanted());
      },
    },
    text,
  );
  return button;
}

async function turn(wanted: Knob): Promise<void> {
  const done = await post<Done & { readonly demo: ShownDemo }>("?part=knob", wanted);
  if ("demo" in done) showDemo(done.demo);
  tell(done);
}
