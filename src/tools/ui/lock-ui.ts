import type { IncomingMessage, ServerResponse } from "node:http";
import pTimeout from "p-timeout";
import type { Listed, ListOptions } from "../../index.ts";
import { linkTo, prefixOf } from "../../inside.ts";
import { act } from "./act.ts";
import { type Asset, assets } from "./assets.generated.ts";
import { blocked } from "./blocked.ts";
import { Deadlocks } from "./deadlocks.ts";
import { type Demo, turn } from "./demo.ts";
import {
  type Admit,
  admission,
  isForeign,
  isFromPage,
  json,
  plainly,
  respond,
  type Sender,
  type Viewer,
} from "./guard.ts";
import { headline } from "./headline.ts";
import { LeaderValues } from "./leader-values.ts";
import { serve } from "./node.ts";
import { checkUIOptions, type LockUIOptions } from "./options.ts";
import { inOrder } from "./order.ts";
import { ServerState } from "./server-state.ts";
import type { Shown, ShownCircle } from "./shown.ts";
import { stream } from "./stream.ts";
import type { Seen, Survey } from "./survey.ts";
import {
  filterOf,
  fits,
  isPattern,
  type Known,
  kindOf,
  narrowOf,
  passes,
  shownHolder,
  shownLock,
  shownWaiter,
} from "./views.ts";
import { WaitTimes } from "./wait-times.ts";
import { withWaitsNow } from "./waits-now.ts";
import type { Sight } from "./watch.ts";
import { Watches } from "./watches.ts";

/** Viewers beyond this are refused with 503. */
const VIEWERS = 100;
/** ms that a viewer waits for the value of an election's leader. */
const PATIENCE = 1_000;
const UNREAD = "The page was created without a connection to read the notes of waiting callers from.";
const FOREIGN =
  "Only the page itself is answered: the Origin of this request is not its Host. A proxy before the page must forward the Host of the request.";
/** The most rows that a browser gets. */
const ROWS = 500;

/** The page, as `createLockUI` makes it. Its handlers need no `this`. */
export interface LockUI {
  /** Answers a request of Hono, Bun, Deno, Next.js, h3 and others, whatever its path. */
  readonly fetch: (request: Request) => Promise<Response>;
  /**
   * Answers a request of `node:http`, Express, Koa, Fastify, Nest and others, whatever its path. A
   * body that was read before must be its `body`, as in Express and Nest; docs/page.md has the lines
   * for Koa and Fastify.
   */
  readonly node: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Ends all streams of viewers. Requests that come later are answered with 503. */
  readonly close: () => void;
}

/**
 * Creates the page that shows the locks of all processes: their holders and since when, their
 * waiters, and which client blocks which. It asks Redis every 2 s, once for all viewers, and not at
 * all without a viewer. It changes nothing unless `actions` allow it.
 *
 * @param options.locks the lock client of one Redis.
 * @param options.authorize decides which requests may see it. Left out: only browsers of this
 *   machine, and only by `node`.
 * @param options.actions what viewers may do: "recall", "break". They need `authorize`. Default: nothing.
 * @param options.redis a connection to the same Redis, for the reports of `observe()`, for deadlocks,
 *   and for the server's restarts and memory. Left out: none of these is shown.
 * @throws TypeError for bad options.
 * @example
 * const ui = createLockUI({ locks, authorize: (request) => isAdmin(request) });
 * app.use("/locks", ui.node);
 */
export function createLockUI(options: LockUIOptions): LockUI {
  const checked = checkUIOptions(options);
  return lockUI(checked, admission(checked.authorize));
}

/**
 * The same as `createLockUI`, but `admit` decides which requests are admitted. `demo`: what works
 * with these locks.
 */
export function lockUI(options: LockUIOptions, admit: Admit, demo: Demo | null = null): LockUI {
  const page = new Page(options, admit, demo);
  return {
    fetch: (request) => page.answer(request, null),
    node: (request, response) => serve((made, sender) => page.answer(made, sender), request, response),
    close: () => page.close(),
  };
}

class Page {
  readonly #options: LockUIOptions;
  readonly #admit: Admit;
  readonly #demo: Demo | null;
  readonly #watches: Watches;
  readonly #waitTimes: WaitTimes | null;
  readonly #deadlocks: Deadlocks | null;
  readonly #server: ServerState | null;
  readonly #values: LeaderValues;
  readonly #ended = new AbortController();
  #circles: { readonly survey: Survey | null; readonly known: readonly ShownCircle[] } = {
    survey: null,
    known: [],
  };

  constructor(options: LockUIOptions, admit: Admit, demo: Demo | null) {
    this.#options = options;
    this.#admit = admit;
    this.#demo = demo;
    const { locks, redis } = options;
    const link = redis ? linkTo(redis) : null;
    const waitTimes = link && new WaitTimes(link, prefixOf(locks));
    const deadlocks = link && new Deadlocks(link, prefixOf(locks));
    // A Cluster has many servers, and a restart of one concerns a part of the locks.
    const server = link && !link.nodes ? new ServerState(link) : null;
    this.#waitTimes = waitTimes;
    this.#deadlocks = deadlocks;
    this.#server = server;
    this.#values = new LeaderValues(locks);
    const list = async function* (options: ListOptions): AsyncGenerator<Listed> {
      const isAll = options.match === undefined;
      // Before the locks, which then show whether the notes are still true.
      await Promise.all([waitTimes?.refresh(), ...(isAll ? [deadlocks?.refresh(), server?.measure()] : [])]);
      yield* locks.list(options);
      // RACE: asked before the locks, a server that then restarts would be taken for the one whose
      // locks were listed, and the next look would have nothing to compare.
      if (isAll) await server?.refresh();
    };
    this.#watches = new Watches(list, () => server?.run ?? null);
  }

  close(): void {
    this.#ended.abort();
  }

  async answer(request: Request, sender: Sender | null): Promise<Response> {
    if (isForeign(request)) return plainly(403, FOREIGN);
    const viewer = await this.#admit(request, sender);
    if (viewer instanceof Response) return viewer;
    if (this.#ended.signal.aborted) return plainly(503, "The page of locks is closed.");
    const { searchParams } = new URL(request.url);
    // All parts have the page's own path: a framework may cut off that path, or a slash at its end,
    // or route no other path to the page.
    const part = searchParams.get("part") ?? "index.html";
    if (request.method === "POST") return this.#act(part, viewer, request);
    if (request.method !== "GET" && request.method !== "HEAD") return plainly(405, "GET and POST only.");
    if (part === "events" || part === "state") await this.#readValue(searchParams);
    if (part === "events") return this.#events(request, searchParams);
    if (part === "state") {
      const { sight, isNarrow } = await this.#watches.once(narrowOf(searchParams.get("view"), searchParams));
      return json(this.#show(sight, isNarrow, searchParams));
    }
    const asset = Object.hasOwn(assets, part) ? assets[part] : undefined;
    return asset ? sendAsset(asset, request) : plainly(404, "There is nothing here.");
  }

  async #act(part: string, viewer: Viewer, request: Request): Promise<Response> {
    const demo = part === "knob" ? this.#demo : null;
    if (part !== "act" && !demo) return plainly(404, "There is nothing here.");
    if (!isFromPage(request)) return plainly(403, "Actions come from the page itself.");
    if (demo) return turn(demo, request);
    return act(this.#options, viewer, request);
  }

  /** Of the election that is shown. A Redis that does not answer delays the page no longer than this. */
  async #readValue(wanted: URLSearchParams): Promise<void> {
    if (wanted.get("view") !== "lock" || wanted.get("kind") !== "election") return;
    const read = this.#values.refresh(wanted.get("name") ?? "");
    await pTimeout(read, { milliseconds: PATIENCE, fallback: () => {} });
  }

  #events(request: Request, wanted: URLSearchParams): Response {
    if (this.#watches.viewers >= VIEWERS) return plainly(503, `${VIEWERS} viewers look already.`);
    const ended = AbortSignal.any([this.#ended.signal, request.signal]);
    const narrow = narrowOf(wanted.get("view"), wanted);
    return stream(
      (tell) =>
        this.#watches.view(narrow, (sight, isNarrow) =>
          tell(sight.survey?.number ?? 0, this.#show(sight, isNarrow, wanted)),
        ),
      ended,
    );
  }

  /**
   * RACE: a look reads the notes before the locks. While the next look is under way, its notes are
   * newer than the locks that are known, and would be compared with an older state. So the deadlocks
   * of a survey are searched only once.
   */
  #circlesAmong(survey: Survey | null): readonly ShownCircle[] {
    if (survey && survey !== this.#circles.survey)
      this.#circles = { survey, known: this.#deadlocks?.among(survey.locks) ?? [] };
    return survey ? this.#circles.known : [];
  }

  #show(sight: Sight, isNarrow: boolean, wanted: URLSearchParams): Shown {
    const { survey, due, lengths } = sight;
    const { locks, isPartial } = survey ?? { locks: [], isPartial: true };
    const waitTimes = this.#waitTimes;
    const all = this.#watches.all.sight;
    const found = this.#circlesAmong(all.survey);
    const unread = this.#deadlocks ? this.#deadlocks.trouble : UNREAD;
    // If not all was read, "none found" does not mean that there is none.
    const isRead = unread === null && all.survey !== null;
    const circles = found.length === 0 && !isRead ? null : found;
    const sure = found.filter(({ isSure }) => isSure);
    const known: Known = { lengths, callOf: (lock, holder) => waitTimes?.callOf(lock, holder) ?? null };
    const shown = (one: Seen) => shownLock(one, waitTimes?.lost(one) ?? null, known);
    const trouble = sight.trouble ?? all.trouble;
    const search = wanted.get("search") ?? "";
    const seen = {
      ...headline(all, sure, shown),
      memory: this.#server?.memory ?? null,
      server: this.#server?.shown ?? null,
      age: survey && Math.round(performance.now() - survey.at),
      due: Math.round(due),
      total: all.survey?.total ?? 0,
      heldLocks: all.survey?.counts.held ?? 0,
      waitedLocks: all.survey?.counts.waited ?? 0,
      longLocks: all.survey?.counts.long ?? 0,
      isPartial,
      deadlocks: circles && sure.length,
      isByName: isNarrow || isPattern(search),
      unread,
      deaf: waitTimes?.deaf() ?? [],
      untold: waitTimes?.untold ?? null,
      trouble,
      actions: this.#options.actions ?? [],
      demo: this.#demo?.shown() ?? null,
    };
    const processes = waitTimes?.processes ?? 0;
    switch (wanted.get("view")) {
      case "lock": {
        const [kind, name] = [kindOf(wanted.get("kind")), wanted.get("name") ?? ""];
        const lock = locks.find((one) => one.kind === kind && one.name === name) ?? null;
        const holders = lock?.holders.map((one) => shownHolder(one, lock, known)) ?? [];
        const waiters = lock?.waiters?.map(shownWaiter) ?? [];
        const value = lock?.kind === "election" ? this.#values.of(lock) : null;
        // For the next look: the leader may publish another value.
        if (lock?.kind === "election") void this.#values.refresh(lock.name);
        const reported = kind && (waitTimes?.calls({ kind, name }, holders) ?? null);
        const one = { lock: lock && shown(lock), holders, value, waiters, reported, processes };
        return { ...seen, view: "lock", ...one };
      }
      case "blocked":
        return { ...seen, view: "blocked", circles, ...blocked(locks, circles ?? []) };
      case "wait-times": {
        const rows = withWaitsNow(waitTimes?.ended() ?? [], locks);
        return { ...seen, view: "wait-times", waitTimes: rows, processes: waitTimes && processes };
      }
    }
    const only = filterOf(wanted.get("only"));
    const fitting = locks.filter((one) => (isNarrow || fits(one, search)) && passes(one, only));
    const counted = (only ? survey?.counts[only] : survey?.total) ?? 0;
    return {
      ...seen,
      view: "now",
      // Without a search all locks match, also those that were only counted.
      fitting: isNarrow || search === "" ? counted : fitting.length,
      isCut: survey?.isCut ?? false,
      locks: inOrder(fitting, wanted.get("sort") ?? "")
        .slice(0, ROWS)
        .map(shown),
    };
  }
}

/**
 * A browser asks again each time, and gets 304 unless the page has changed: a new version of the
 * server must not serve an old page.
 */
function sendAsset({ type, text, tag }: Asset, request: Request): Response {
  const headers = { etag: tag, "cache-control": "no-cache" };
  return request.headers.get("if-none-match") === tag
    ? respond(null, type, 304, headers)
    : respond(text, type, 200, headers);
}
