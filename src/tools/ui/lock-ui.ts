import type { IncomingMessage, ServerResponse } from "node:http";
import { act } from "./act.ts";
import { type Asset, assets } from "./assets.generated.ts";
import { blocked } from "./blocked.ts";
import { Deadlocks } from "./deadlocks.ts";
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
import { Heat } from "./heat.ts";
import { serve } from "./node.ts";
import { checkUIOptions, type LockUIOptions } from "./options.ts";
import type { Shown } from "./shown.ts";
import { stream } from "./stream.ts";
import { fits, narrowOf, shownHolder, shownLock, shownWaiter } from "./views.ts";
import type { Sight } from "./watch.ts";
import { Watches } from "./watches.ts";

/** More viewers than this are told to come again. */
const VIEWERS = 100;
const UNREAD = "The page was made without a connection by which it could read what callers say that wait.";
const FOREIGN =
  "Only the page itself is answered: the Origin of this request is not its Host. A proxy before the page must hand on the Host that it was asked for.";
/** Rows that a browser still shows at once. */
const ROWS = 500;

/** The page, as `createLockUI` makes it. Its handlers need no `this`. */
export interface LockUI {
  /** Answers a request of Hono, Bun, Deno, Next.js, h3 and others, whatever its path. */
  readonly fetch: (request: Request) => Promise<Response>;
  /**
   * Answers a request of `node:http`, Express, Koa, Fastify, Nest and others, whatever its path. A
   * body that was read before must be its `body`, as Express and Nest do it; how Koa and Fastify do
   * stands in docs/page.md.
   */
  readonly node: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Ends all streams of viewers. Requests that come later are answered with 503. */
  readonly close: () => void;
}

/**
 * Creates the page that shows the locks of all processes: their holders and since when, their
 * waiters, and which client blocks which. It asks Redis every 2 s while anybody looks, once for all
 * viewers, and nothing while nobody does. It changes nothing unless `actions` allow it.
 *
 * @param options.locks the lock client of one Redis.
 * @param options.authorize decides which requests may see it. Left out: only browsers of this
 *   machine, and only by `node`.
 * @param options.actions what viewers may do: "recall", "break". They need `authorize`. Default: nothing.
 * @param options.redis a connection to the same Redis, for what `observe()` has written and for
 *   deadlocks. Left out: neither is shown.
 * @throws TypeError for bad options.
 * @example
 * const ui = createLockUI({ locks, authorize: (request) => isAdmin(request) });
 * app.use("/locks", ui.node);
 */
export function createLockUI(options: LockUIOptions): LockUI {
  const checked = checkUIOptions(options);
  return lockUI(checked, admission(checked.authorize));
}

/** As `createLockUI`, where something else than `authorize` decides who is let in. */
export function lockUI(options: LockUIOptions, admit: Admit): LockUI {
  const page = new Page(options, admit);
  return {
    fetch: (request) => page.answer(request, null),
    node: (request, response) => serve((made, sender) => page.answer(made, sender), request, response),
    close: () => page.close(),
  };
}

class Page {
  readonly #options: LockUIOptions;
  readonly #admit: Admit;
  readonly #watches: Watches;
  readonly #heat: Heat | null;
  readonly #deadlocks: Deadlocks | null;
  readonly #ended = new AbortController();

  constructor(options: LockUIOptions, admit: Admit) {
    this.#options = options;
    this.#admit = admit;
    const { locks, redis } = options;
    const heat = redis ? new Heat(redis) : null;
    const deadlocks = redis ? new Deadlocks(redis) : null;
    this.#heat = heat;
    this.#deadlocks = deadlocks;
    this.#watches = new Watches(async function* (options) {
      // Before the locks, which then show whether the notes are still true.
      const notes = options.match === undefined ? deadlocks?.refresh() : undefined;
      await Promise.all([heat?.refresh(), notes]);
      yield* locks.list(options);
    });
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
    // All parts have the page's own path: what mounts it may cut off that path, or a slash at its
    // end, or lead nothing else to it.
    const part = searchParams.get("part") ?? "index.html";
    if (request.method === "POST") return this.#act(part, viewer, request);
    if (request.method !== "GET" && request.method !== "HEAD") return plainly(405, "GET and POST only.");
    if (part === "events") return this.#events(request, searchParams);
    if (part === "state") {
      const { sight, isNarrow } = await this.#watches.once(narrowOf(searchParams.get("view"), searchParams));
      return json(this.#show(sight, isNarrow, searchParams));
    }
    const asset = Object.hasOwn(assets, part) ? assets[part] : undefined;
    return asset ? sendAsset(asset, request) : plainly(404, "There is nothing here.");
  }

  async #act(part: string, viewer: Viewer, request: Request): Promise<Response> {
    if (part !== "act") return plainly(404, "There is nothing here.");
    if (!isFromPage(request)) return plainly(403, "Actions come from the page itself.");
    return act(this.#options, viewer, request);
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

  #show({ survey, trouble, due, lengths }: Sight, isNarrow: boolean, wanted: URLSearchParams): Shown {
    const { locks, isPartial } = survey ?? { locks: [], isPartial: true };
    const heat = this.#heat;
    const all = (isNarrow ? this.#watches.all.survey : null) ?? survey;
    const known = isNarrow ? [] : (this.#deadlocks?.among(locks) ?? []);
    const unread = this.#deadlocks ? this.#deadlocks.trouble : UNREAD;
    // Of none found nothing follows when not all was read.
    const circles = isNarrow || (known.length === 0 && unread !== null) ? null : known;
    const seen = {
      age: survey && Math.round(performance.now() - survey.at),
      due: Math.round(due),
      total: all?.total ?? 0,
      waitedLocks: all?.waited ?? 0,
      isPartial,
      deadlocks: circles?.filter(({ isSure }) => isSure).length ?? null,
      unread,
      untold: heat?.untold ?? null,
      trouble,
      actions: this.#options.actions ?? [],
    };
    const shown = (one: (typeof locks)[number]) => shownLock(one, heat?.lost(one.name) ?? null, lengths);
    switch (wanted.get("view")) {
      case "lock": {
        const [kind, name] = [wanted.get("kind"), wanted.get("name")];
        const lock = locks.find((one) => one.kind === kind && one.name === name) ?? null;
        const holders = lock?.holders.map((one) => shownHolder(one, lengths.of(one.id))) ?? [];
        const waiters = lock?.waiters?.map(shownWaiter) ?? [];
        const history = heat?.history(name ?? "") ?? null;
        return { ...seen, view: "lock", lock: lock && shown(lock), holders, waiters, history };
      }
      case "blocked":
        return { ...seen, view: "blocked", circles, ...blocked(locks, circles ?? []) };
      case "heat": {
        const processes = heat?.processes ?? 0;
        return { ...seen, view: "heat", heats: heat?.heats() ?? null, processes };
      }
    }
    const search = wanted.get("search") ?? "";
    const fitting = isNarrow ? locks : locks.filter((one) => fits(one, search));
    // Without a search all are wanted, also those that were only counted.
    const count = isNarrow || search === "" ? (survey?.total ?? 0) : fitting.length;
    return {
      ...seen,
      view: "now",
      fitting: count,
      isByName: isNarrow,
      locks: fitting.slice(0, ROWS).map(shown),
    };
  }
}

/**
 * A browser asks again each time, and is told that nothing has changed: a new version of the
 * package must not meet an old page.
 */
function sendAsset({ type, text, tag }: Asset, request: Request): Response {
  const headers = { etag: tag, "cache-control": "no-cache" };
  return request.headers.get("if-none-match") === tag
    ? respond(null, type, 304, headers)
    : respond(text, type, 200, headers);
}
