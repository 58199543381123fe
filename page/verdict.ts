import { memoryTrouble } from "../src/tools/ui/memory.ts";
import { LONG_WAIT, type Shown, type ShownLock, type ShownRestart } from "../src/tools/ui/shown.ts";
import { visible } from "../src/util/visible.ts";
import { at, h, say } from "./dom.ts";
import { many, nameOf, number, time } from "./format.ts";
import { lockLink } from "./parts.ts";
import { grow, tick } from "./ticking.ts";

/** ms from which a wait is a problem. */
const TOO_LONG = 60_000;
/** ms of age from which data is called stale: from then on nothing is said to be well. */
export const STALE = 6_000;

/** ms for one answer of Redis from which it is slow: a lock takes at least as long. */
export const SLOW = 500;

type Level = "fine" | "long" | "bad";

export const levelOf = (wait: number | null): Level =>
  wait === null || wait < LONG_WAIT ? "fine" : wait < TOO_LONG ? "long" : "bad";

interface Fact {
  readonly title: string;
  readonly level: Level;
  readonly text: () => (Node | string)[];
}

const [line, headline, facts, trouble] = [at("verdict"), at("headline"), at("facts"), at("trouble")];
const [waitedFor, heldFor, oldFor, usualAge] = [h("span"), h("span"), h("span"), h("span")];
const renewedAgo = h("span");
const restartedFor = h("span");
let shown = "";

/** The line that answers "is something wrong?": the most important fact first. */
export function judge(seen: Shown): void {
  const all = factsIn(seen);
  const { worst, oldest, usual, allAge, restart, memory, unread } = seen;
  grow(waitedFor, worst?.longest ?? null, allAge);
  grow(heldFor, worst?.holder?.heldFor ?? null, allAge);
  grow(renewedAgo, worst?.holder?.renewed ?? null, allAge);
  grow(oldFor, oldest?.holder?.heldFor ?? null, allAge);
  grow(restartedFor, restart?.ago ?? null, 0);
  say(usualAge, time(usual));
  trouble.hidden = true;
  const begin = (passed: number): string => {
    const [first] = all;
    const isStale = passed >= STALE;
    const isWell = allAge !== null && unread === null && !isStale;
    line.dataset.level = first?.level ?? (isWell ? "fine" : "");
    facts.hidden = !first && isStale;
    if (first) return `${first.title}:`;
    if (allAge === null) return "Reading the locks …";
    if (isStale) return "Nothing was wrong at the last update.";
    return unread === null ? "All is well." : "Nothing wrong found.";
  };
  // The data grows old between two looks, and what was well then may not be now.
  tick(headline, allAge, (passed) => say(headline, begin(passed)));
  // Built anew is only what has another form, so that a link in it keeps the focus.
  const { deadlocks, deadlocked, longWaits, oldHolds, server } = seen;
  const form = JSON.stringify([
    all.map(({ title, level }) => [title, level]),
    [worst, oldest].map((lock) => lock && [lock.kind, lock.name, lock.holder?.id, lock.holder?.label]),
    [
      worst?.longest === null,
      worst?.holder?.renewed === null,
      worst?.waitingProcesses,
      allAge === null,
      unread,
      deadlocks,
      deadlocked,
      longWaits,
      oldHolds,
    ],
    [restart?.isCertain, restart?.held, restart?.gone, memory],
    server && server.roundTrip >= SLOW ? time(server.roundTrip) : null,
    seen.deaf.map(({ client, why }) => [client, why]),
  ]);
  if (form === shown) return;
  shown = form;
  const focus = facts.contains(document.activeElement) ? document.activeElement?.getAttribute("href") : null;
  if (all.length > 0)
    facts.replaceChildren(
      ...all.map(({ title, text }, i) =>
        h("span", {}, i > 0 && h("b", {}, ` ${title}:`), " ", ...text(), "."),
      ),
    );
  else facts.replaceChildren(...(allAge === null ? [] : calm(seen)));
  // A number that changed must not take the keyboard's place away.
  if (focus) [...facts.querySelectorAll("a")].find((link) => link.getAttribute("href") === focus)?.focus();
}

/** In place of the facts: why there are no new ones. */
export function admit(title: string, why: string): void {
  shown = "";
  tick(headline, null, () => {});
  line.dataset.level = why === "" ? "long" : "bad";
  say(headline, title);
  say(trouble, visible(why));
  facts.hidden = true;
  trouble.hidden = why === "";
}

function factsIn(seen: Shown): Fact[] {
  const { deadlocks, deadlocked, worst, longWaits, oldest, oldHolds, restart, server } = seen;
  const memory = memoryTrouble(seen.memory);
  const found: Fact[] = [];
  if (memory?.isFull) found.push({ title: memory.title, level: "bad", text: () => [memory.text] });
  if (deadlocks)
    found.push({
      title: deadlocks === 1 ? "Deadlock" : many(deadlocks, "deadlock"),
      level: "bad",
      text: () => [
        h("a", { href: "#/blocked" }, "callers wait for each other"),
        ...deadlocked.flatMap((locks, i) => [i === 0 ? " over " : "; over ", ...listed(locks)]),
        ...more(deadlocks - deadlocked.length, "; and "),
      ],
    });
  const level = levelOf(worst?.longest ?? null);
  if (worst && level !== "fine")
    found.push({
      title: isLeaderless(worst) ? "No leader" : "Long wait",
      level,
      text: () => [
        ...[lockLink(worst), " for ", waitedFor, ","],
        ...(isLeaderless(worst)
          ? [` with ${many(worst.waitingProcesses, "candidate")}`]
          : heldBy(worst, heldFor, renewedAgo)),
        ...more(longWaits - 1),
      ],
    });
  if (restart && restart.gone > 0)
    found.push({ title: "Locks gone", level: "long", text: () => lossOf(restart) });
  if (server && server.roundTrip >= SLOW)
    found.push({
      title: "Redis is slow",
      level: "long",
      text: () => [`it answered after ${time(server.roundTrip)}, and each lock takes at least as long`],
    });
  if (memory && !memory.isFull) found.push({ title: memory.title, level: "long", text: () => [memory.text] });
  const [deaf] = seen.deaf;
  if (deaf)
    found.push({
      title: "No messages",
      level: "long",
      text: () => [
        `callers of ${visible(deaf.label ?? deaf.host ?? deaf.client)} get locks late: ${visible(deaf.why).replace(/\.$/, "")}`,
        ...more(seen.deaf.length - 1),
      ],
    });
  if (oldest)
    found.push({
      title: "Old holder",
      level: "long",
      text: () => [
        ...[lockLink(oldest), ...heldBy(oldest, oldFor), " (usual: ", usualAge, ")"],
        ...more(oldHolds - 1),
      ],
    });
  return found;
}

const lossOf = ({ isCertain, held, gone }: ShownRestart): (Node | string)[] =>
  isCertain
    ? [
        ...restarted(),
        `, and ${number(gone)} of ${many(held, "lock")} held before ${gone === 1 ? "is" : "are"} gone`,
      ]
    : [
        "when Redis answered again ",
        restartedFor,
        ` ago, it held none of the ${many(held, "lock")} from before`,
      ];

/** Both change the run id, which does not say which of them it was. */
const restarted = (): (Node | string)[] => ["Redis restarted or failed over ", restartedFor, " ago"];

/** Locks that are named in one fact. */
const NAMED = 4;

const listed = (locks: readonly Pick<ShownLock, "kind" | "name">[]): (Node | string)[] => [
  ...locks.slice(0, NAMED).flatMap((lock, i) => {
    const before = i === 0 ? "" : i === locks.length - 1 ? " and " : ", ";
    return [before, lockLink(lock)];
  }),
  ...more(locks.length - NAMED, " and "),
];

const more = (count: number, before = ", and "): string[] =>
  count > 0 ? [`${before}${number(count)} more`] : [];

const isLeaderless = ({ kind, holder }: ShownLock): boolean => kind === "election" && holder === null;

const heldBy = ({ holder }: ShownLock, time: Node, renewed?: Node): (Node | string)[] => {
  if (!holder) return [" free"];
  const last = renewed && holder.renewed !== null ? [", renewed ", renewed, " ago"] : [];
  return [" held by ", h("bdi", {}, nameOf(holder)), " for ", time, ...last];
};

/** What there is to say where nothing is wrong. */
function calm({ worst, unread, restart }: Shown): (Node | string)[] {
  const still = restart?.held ? ", and the locks held before are still held." : ".";
  const last = restart ? [" ", ...restarted(), still] : [];
  if (unread !== null) return ["Deadlocks are not known.", ...last];
  if (!worst) return ["No process is waiting.", ...last];
  return ["The longest wait is ", waitedFor, ".", ...last];
}
